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

/// The state of one XXH3 with seed 0, whose 64 and 128 bits come from the same input. It is on the heap, at a multiple
/// of 64, which Swift's values are not. NULL without memory.
static inline void *_Nullable inlet_xxh3_begin(void) {
    XXH3_state_t *hash = XXH3_createState();
    if (hash) (void)XXH3_128bits_reset(hash);
    return hash;
}

static inline void inlet_xxh3_copy(void *_Nonnull hash, const void *_Nonnull from) { XXH3_copyState(hash, from); }

static inline void inlet_xxh3_update(void *_Nonnull hash, const void *_Nonnull bytes, size_t length) {
    (void)XXH3_128bits_update(hash, bytes, length);
}

static inline uint64_t inlet_xxh3_digest(const void *_Nonnull hash) { return XXH3_64bits_digest(hash); }

/// The 128 bits, most significant first.
static inline void inlet_xxh128_digest(const void *_Nonnull hash, uint8_t *_Nonnull bytes) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hash));
    for (size_t index = 0; index < sizeof canonical.digest; index++) bytes[index] = canonical.digest[index];
}

static inline void inlet_xxh3_end(void *_Nonnull hash) { (void)XXH3_freeState(hash); }
