#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* MD5 (RFC 1321) of up to eight streams at once. One MD5 is a chain of steps that each wait for the one before, and
 * leaves most of a core idle; eight of them, each in a lane of vector registers, take as long as two and a half. No
 * library of the supported systems does that. The vectors are the compiler's, for any processor; the byte order is
 * little-endian. */

enum { inlet_md5_lane_count = 8, inlet_md5_block_size = 64 };

/// The chaining values A to D of eight streams.
typedef struct {
    uint32_t word[4][inlet_md5_lane_count];
} inlet_md5_lanes;

typedef uint32_t inlet_md5_vector __attribute__((vector_size(32)));
typedef uint32_t inlet_md5_half __attribute__((vector_size(16)));

/* As RFC 1321 has them, written so that as little as can be waits for x, which comes last. */
#define INLET_MD5_F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define INLET_MD5_G(x, y, z) (((y) & ~(z)) + ((x) & (z)))
#define INLET_MD5_H(x, y, z) ((x) ^ ((y) ^ (z)))
#define INLET_MD5_I(x, y, z) ((y) ^ ((x) | ~(z)))

/* For numbers and for vectors, over whose lanes the compiler spreads the constants. */
#define INLET_MD5_STEP(f, a, b, c, d, m, k, s) \
    a += (m) + k; \
    a += f(b, c, d); \
    a = ((a << s) | (a >> (32 - s))) + b;

#define INLET_MD5_FOUR(f, i, j, k, l, s, t, u, v, p, q, r, o) \
    INLET_MD5_STEP(f, a, b, c, d, m[i], p, s) \
    INLET_MD5_STEP(f, d, a, b, c, m[j], q, t) \
    INLET_MD5_STEP(f, c, d, a, b, m[k], r, u) \
    INLET_MD5_STEP(f, b, c, d, a, m[l], o, v)

#define INLET_MD5_ROUNDS \
    INLET_MD5_FOUR(INLET_MD5_F, 0, 1, 2, 3, 7, 12, 17, 22, 0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu) \
    INLET_MD5_FOUR(INLET_MD5_F, 4, 5, 6, 7, 7, 12, 17, 22, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u) \
    INLET_MD5_FOUR(INLET_MD5_F, 8, 9, 10, 11, 7, 12, 17, 22, 0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu) \
    INLET_MD5_FOUR(INLET_MD5_F, 12, 13, 14, 15, 7, 12, 17, 22, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u) \
    INLET_MD5_FOUR(INLET_MD5_G, 1, 6, 11, 0, 5, 9, 14, 20, 0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau) \
    INLET_MD5_FOUR(INLET_MD5_G, 5, 10, 15, 4, 5, 9, 14, 20, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u) \
    INLET_MD5_FOUR(INLET_MD5_G, 9, 14, 3, 8, 5, 9, 14, 20, 0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu) \
    INLET_MD5_FOUR(INLET_MD5_G, 13, 2, 7, 12, 5, 9, 14, 20, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au) \
    INLET_MD5_FOUR(INLET_MD5_H, 5, 8, 11, 14, 4, 11, 16, 23, 0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu) \
    INLET_MD5_FOUR(INLET_MD5_H, 1, 4, 7, 10, 4, 11, 16, 23, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u) \
    INLET_MD5_FOUR(INLET_MD5_H, 13, 0, 3, 6, 4, 11, 16, 23, 0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u) \
    INLET_MD5_FOUR(INLET_MD5_H, 9, 12, 15, 2, 4, 11, 16, 23, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u) \
    INLET_MD5_FOUR(INLET_MD5_I, 0, 7, 14, 5, 6, 10, 15, 21, 0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u) \
    INLET_MD5_FOUR(INLET_MD5_I, 12, 3, 10, 1, 6, 10, 15, 21, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u) \
    INLET_MD5_FOUR(INLET_MD5_I, 8, 15, 6, 13, 6, 10, 15, 21, 0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u) \
    INLET_MD5_FOUR(INLET_MD5_I, 4, 11, 2, 9, 6, 10, 15, 21, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u)

static inline void inlet_md5_begin(inlet_md5_lanes *_Nonnull lanes, int lane) {
    const uint32_t start[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    for (int at = 0; at < 4; at++) lanes->word[at][lane] = start[at];
}

/// Sets a lane back to what it was.
static inline void inlet_md5_copy(inlet_md5_lanes *_Nonnull lanes, const inlet_md5_lanes before, int lane) {
    for (int at = 0; at < 4; at++) lanes->word[at][lane] = before.word[at][lane];
}

/// Goes on with `blocks` blocks of 64 bytes in one lane alone.
static inline void inlet_md5_update_one(
    inlet_md5_lanes *_Nonnull lanes, int lane, const void *_Nonnull bytes, size_t blocks) {
    const unsigned char *next = (const unsigned char *)bytes;
    uint32_t a = lanes->word[0][lane], b = lanes->word[1][lane], c = lanes->word[2][lane], d = lanes->word[3][lane];
    uint32_t m[16];
    for (; blocks > 0; blocks--, next += inlet_md5_block_size) {
        uint32_t a0 = a, b0 = b, c0 = c, d0 = d;
        memcpy(m, next, sizeof m);
        INLET_MD5_ROUNDS
        a += a0, b += b0, c += c0, d += d0;
    }
    lanes->word[0][lane] = a, lanes->word[1][lane] = b, lanes->word[2][lane] = c, lanes->word[3][lane] = d;
}

/* Four words of each of four streams: from one vector for each stream to one for each word. */
static inline void inlet_md5_turn(inlet_md5_half *_Nonnull v) {
    inlet_md5_half low01 = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    inlet_md5_half low23 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    inlet_md5_half high01 = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    inlet_md5_half high23 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/* The 16 bytes at `offset` of each stream, as four words of all streams. */
static inline void inlet_md5_load(
    inlet_md5_vector *_Nonnull m, const void *_Nonnull const *_Nonnull bytes, size_t offset) {
    inlet_md5_half low[4], high[4];
    for (int lane = 0; lane < 4; lane++) {
        memcpy(&low[lane], (const unsigned char *)bytes[lane] + offset, 16);
        memcpy(&high[lane], (const unsigned char *)bytes[lane + 4] + offset, 16);
    }
    inlet_md5_turn(low);
    inlet_md5_turn(high);
    for (int at = 0; at < 4; at++) m[at] = __builtin_shufflevector(low[at], high[at], 0, 1, 2, 3, 4, 5, 6, 7);
}

/// Goes on with `blocks` blocks of 64 bytes in all eight lanes; `bytes` has a pointer for each.
static inline void inlet_md5_update_all(
    inlet_md5_lanes *_Nonnull lanes, const void *_Nonnull const *_Nonnull bytes, size_t blocks) {
    inlet_md5_vector word[4], m[16];
    memcpy(word, lanes->word, sizeof word);
    inlet_md5_vector a = word[0], b = word[1], c = word[2], d = word[3];
    for (size_t offset = 0; offset < blocks * inlet_md5_block_size; offset += inlet_md5_block_size) {
        inlet_md5_vector a0 = a, b0 = b, c0 = c, d0 = d;
        for (int at = 0; at < 4; at++) inlet_md5_load(m + 4 * at, bytes, offset + 16 * (size_t)at);
        INLET_MD5_ROUNDS
        a += a0, b += b0, c += c0, d += d0;
    }
    word[0] = a, word[1] = b, word[2] = c, word[3] = d;
    memcpy(lanes->word, word, sizeof word);
}

/// The chaining values of a lane as the 16 bytes of the digest.
static inline void inlet_md5_digest(const inlet_md5_lanes *_Nonnull lanes, int lane, void *_Nonnull sixteen) {
    for (int at = 0; at < 4; at++) memcpy((unsigned char *)sixteen + 4 * at, &lanes->word[at][lane], 4);
}

#undef INLET_MD5_F
#undef INLET_MD5_G
#undef INLET_MD5_H
#undef INLET_MD5_I
#undef INLET_MD5_STEP
#undef INLET_MD5_FOUR
#undef INLET_MD5_ROUNDS
