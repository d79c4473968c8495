#pragma once

#include <stddef.h>

/// A file of the folder `page`, as it was when the program was built.
struct InletWebFile {
    /// Its name in the folder: `index.html`.
    const char *_Nonnull name;
    /// Its media type, with the charset of a text.
    const char *_Nonnull type;
    /// UTF-8, with a zero at its end.
    const unsigned char *_Nonnull text;
};

/// The files one by one, from 0 on; NULL after the last.
const struct InletWebFile *_Nullable inlet_web_file(size_t index);
