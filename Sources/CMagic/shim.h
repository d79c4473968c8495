/* libmagic (file(1)), found at run time: neither its header nor the library is needed where no route asks what a file holds.
   The calls and numbers are those of magic.h, the same since file 5.0. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

/* MAGIC_MIME_TYPE, and MAGIC_NO_CHECK_COMPRESS: nothing is unpacked. */
static const int inlet_magic_flags = 0x10 | 0x1000;

typedef struct {
    void *_Nonnull cookie;
    const char *_Nullable (*_Nonnull buffer)(void *_Nonnull, const void *_Nonnull, size_t);
    const char *_Nullable (*_Nonnull error)(void *_Nonnull);
    void (*_Nonnull close)(void *_Nonnull);
} inlet_magic;

/* Loads the library and its database. NULL, and `why` in static or the loader's memory, where either is missing. The library
   stays loaded. */
static inline inlet_magic *_Nullable inlet_magic_open(const char *_Nullable *_Nonnull why) {
    void *library = dlopen("libmagic.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        *why = dlerror();
        return NULL;
    }
    void *(*open)(int) = (void *(*)(int))dlsym(library, "magic_open");
    int (*load)(void *, const char *) = (int (*)(void *, const char *))dlsym(library, "magic_load");
    void (*close)(void *) = (void (*)(void *))dlsym(library, "magic_close");
    const char *(*error)(void *) = (const char *(*)(void *))dlsym(library, "magic_error");
    const char *(*buffer)(void *, const void *, size_t) =
        (const char *(*)(void *, const void *, size_t))dlsym(library, "magic_buffer");
    if (!open || !load || !close || !error || !buffer) {
        *why = "libmagic.so.1 lacks a call";
        return NULL;
    }
    void *cookie = open(inlet_magic_flags);
    if (!cookie) {
        *why = "magic_open failed";
        return NULL;
    }
    if (load(cookie, NULL) != 0) {
        *why = "its database (magic.mgc) cannot be loaded";
        close(cookie);
        return NULL;
    }
    inlet_magic *magic = malloc(sizeof *magic);
    if (!magic) {
        *why = "out of memory";
        close(cookie);
        return NULL;
    }
    *magic = (inlet_magic){cookie, buffer, error, close};
    return magic;
}

/* The media type of what begins with these bytes, in memory of the library until the next call; NULL on trouble. */
static inline const char *_Nullable inlet_magic_type(
    const inlet_magic *_Nonnull magic, const void *_Nonnull bytes, size_t count
) {
    return magic->buffer(magic->cookie, bytes, count);
}

static inline const char *_Nullable inlet_magic_error(const inlet_magic *_Nonnull magic) {
    return magic->error(magic->cookie);
}

static inline void inlet_magic_close(inlet_magic *_Nonnull magic) {
    magic->close(magic->cookie);
    free(magic);
}
