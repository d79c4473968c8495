#pragma once

#include <stddef.h>

/// A file of the folder `page`, from the time of the build.
struct InletWebFile {
    /// Its name in the folder: `index.html`.
    const char *_Nonnull name;
    /// Its media type, with the charset where it is text.
    const char *_Nonnull type;
    /// UTF-8, with a zero at its end.
    const unsigned char *_Nonnull text;
};

/// The file with this index, counted from 0; NULL after the last.
const struct InletWebFile *_Nullable inlet_web_file(size_t index);
