#pragma once

// All of it comes with the header, and can be compiled into its callers: nothing is linked.
#define XXH_INLINE_ALL
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

/// The state of one XXH64 with seed 0, as media hash lists use it.
typedef struct {
    XXH64_state_t state;
} inlet_xxh64;

static inline inlet_xxh64 inlet_xxh64_begin(void) {
    inlet_xxh64 hash;
    (void)XXH64_reset(&hash.state, 0);
    return hash;
}

static inline void inlet_xxh64_update(inlet_xxh64 *_Nonnull hash, const void *_Nonnull bytes, size_t length) {
    (void)XXH64_update(&hash->state, bytes, length);
}

static inline uint64_t inlet_xxh64_digest(const inlet_xxh64 *_Nonnull hash) { return XXH64_digest(&hash->state); }
