#pragma once

#include "CHash.h"

#include <string.h>

enum { MOST_LANES = 16, BLOCK = 64, LARGEST_CONTEXT = 128 };

/// One way to hash several streams at once.
struct way {
    const char *name;
    /// How many streams `blocks` moves on.
    size_t width;
    /// Moves each context on by whole blocks of its own bytes. Unused lanes may share a context.
    void (*blocks)(void *const contexts[], const uint8_t *const bytes[], size_t blocks);
    /// How many bytes of an unfinished block the context holds.
    size_t (*pending)(const void *context);
    /// Libcrypto's function, for one stream.
    void (*update)(void *context, const void *bytes, size_t length);
    /// For fewer streams; NULL where there is none.
    const struct way *narrower;
};

static inline const char *way_name(const struct way *way) { return way ? way->name : NULL; }

void update_side_by_side(const struct way *way, const struct inlet_stream *streams, size_t count);
