inlet queue show 1
