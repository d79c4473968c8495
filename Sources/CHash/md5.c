#include "CHash.h"
#include "processor.h"
#include "streams.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

// MD5 (RFC 1321) of independent streams. One stream is a chain of steps that wait for each other. A processor's wide
// vectors take these steps for eight or sixteen streams in the time of one.

static const uint32_t SINES[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
static const uint8_t TURNS[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
// Step s takes word FACTOR * s + OFFSET of the block, modulo 16.
static const uint8_t FACTORS[4] = {1, 5, 3, 7}, OFFSETS[4] = {0, 1, 5, 0};

/// Libcrypto counts bits, in two halves.
static void count_blocks(MD5_CTX *context, size_t blocks) {
    uint64_t bits = ((uint64_t)context->Nh << 32 | context->Nl) + (uint64_t)blocks * 512;
    context->Nl = (MD5_LONG)bits, context->Nh = (MD5_LONG)(bits >> 32);
}

#define LANES 8
#define NAME plain
#include "md5_lanes.h"
#undef NAME

#if defined(__x86_64__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define NAME avx2
#include "md5_lanes.h"
#undef NAME
#pragma clang attribute pop

#undef LANES
#define LANES 16
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw"))), apply_to = function)
#define NAME avx512
#include "md5_lanes.h"
#undef NAME
#pragma clang attribute pop
#endif

static size_t pending(const void *context) { return ((const MD5_CTX *)context)->num; }

static void update(void *context, const void *bytes, size_t length) { MD5_Update(context, bytes, length); }

static const struct way plain_way = {"plain", 8, plain, pending, update, NULL};
#if defined(__x86_64__)
static const struct way avx2_way = {"avx2", 8, avx2, pending, update, NULL};
static const struct way avx512_way = {"avx512", 16, avx512, pending, update, &avx2_way};
#endif

static const struct way *way(size_t index) {
    const struct way *found[3] = {};
    size_t count = 0;
#if defined(__x86_64__)
    if (has_avx512()) found[count++] = &avx512_way;
    if (has_avx2()) found[count++] = &avx2_way;
#endif
    found[count++] = &plain_way;
    return index < count ? found[index] : NULL;
}

const char *inlet_md5_build(size_t index) { return way_name(way(index)); }

void inlet_md5_update(size_t build, const struct inlet_stream *streams, size_t count) {
    update_side_by_side(way(build), streams, count);
}
