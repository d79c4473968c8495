ls ~/Library
