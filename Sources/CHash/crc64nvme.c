#include "CHash.h"
#include "processor.h"

#include <string.h>
#include <threads.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// CRC-64/NVME: polynomial 0xad93d23594c93659, bits reflected, begins and ends with an inversion. The functions below
// leave the inversions to the builds at the end.

static const uint64_t POLYNOMIAL = 0x9a6c9329ac4bc9b5;

/// `tables[n][b]` is the remainder of the byte `b` with `n` zero bytes after it.
static uint64_t tables[8][256];

static void make_tables(void) {
    for (int byte = 0; byte < 256; byte++) {
        uint64_t crc = (uint64_t)byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int zeros = 1; zeros < 8; zeros++) {
        for (int byte = 0; byte < 256; byte++) {
            uint64_t shorter = tables[zeros - 1][byte];
            tables[zeros][byte] = shorter >> 8 ^ tables[0][shorter & 255];
        }
    }
}

static uint64_t load(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint64_t by_table(uint64_t crc, const uint8_t *bytes, size_t length) {
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_tables);
    for (; length >= 8; length -= 8, bytes += 8) {
        uint64_t word = crc ^ load(bytes);
        crc = 0;
        for (int at = 0; at < 8; at++) crc ^= tables[7 - at][word >> 8 * at & 255];
    }
    for (; length > 0; length--) crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 255];
    return crc;
}

// Carry-less multiplication moves 128 bits of the message D bits forward: their first half times x^(D+63) and their
// second times x^(D-1), both modulo the polynomial, with the bits reflected. Reflected products lack one bit, hence the
// odd powers.

#if defined(__x86_64__) || defined(__aarch64__)
typedef uint64_t block __attribute__((vector_size(16)));

static const block FORWARD_128 = {0xeadc41fd2ba3d420, 0x21e9761e252621ac};
static const block FORWARD_256 = {0xb0bc2e589204f500, 0xe1e0bb9d45d7a44c};
static const block FORWARD_512 = {0x0c32cdb31e18a84a, 0x62242240ace5045a};

#if defined(__x86_64__)
#define CARRYLESS __attribute__((target("pclmul")))
static inline CARRYLESS block forward(block from, block by) {
    __m128i one = (__m128i)from, factor = (__m128i)by;
    return (block)_mm_clmulepi64_si128(one, factor, 0x00) ^ (block)_mm_clmulepi64_si128(one, factor, 0x11);
}
#else
#define CARRYLESS __attribute__((target("aes")))
static inline CARRYLESS block forward(block from, block by) {
    return (block)vmull_p64(from[0], by[0]) ^ (block)vmull_p64(from[1], by[1]);
}
#endif

static block load_block(const uint8_t *bytes) { return (block){load(bytes), load(bytes + 8)}; }

static CARRYLESS uint64_t by_carryless(uint64_t crc, const uint8_t *bytes, size_t length) {
    if (length < 64) return by_table(crc, bytes, length);
    block sums[4];
    for (int at = 0; at < 4; at++) sums[at] = load_block(bytes + 16 * at);
    sums[0][0] ^= crc;
    for (bytes += 64, length -= 64; length >= 64; bytes += 64, length -= 64) {
        for (int at = 0; at < 4; at++) sums[at] = forward(sums[at], FORWARD_512) ^ load_block(bytes + 16 * at);
    }
    block first = forward(sums[0], FORWARD_256) ^ sums[2], second = forward(sums[1], FORWARD_256) ^ sums[3];
    block rest = forward(first, FORWARD_128) ^ second;
    return by_table(by_table(0, (const uint8_t *)&rest, sizeof rest), bytes, length);
}
#endif

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,vpclmulqdq")))
static inline WIDE __m512i forward_wide(__m512i from, __m512i by, const uint8_t *bytes) {
    __m512i low = _mm512_clmulepi64_epi128(from, by, 0x00), high = _mm512_clmulepi64_epi128(from, by, 0x11);
    return _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(bytes), 0x96);
}

static WIDE uint64_t by_wide_carryless(uint64_t crc, const uint8_t *bytes, size_t length) {
    if (length < 512) return by_carryless(crc, bytes, length);
    const __m512i by = _mm512_set4_epi64(
        (long long)0xa043808c0f782663, 0x37ccd3e14069cabc, (long long)0xa043808c0f782663, 0x37ccd3e14069cabc);
    __m512i sums[4];
    for (int at = 0; at < 4; at++) sums[at] = _mm512_loadu_si512(bytes + 64 * at);
    sums[0] = _mm512_xor_si512(sums[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, (long long)crc));
    for (bytes += 256, length -= 256; length >= 256; bytes += 256, length -= 256) {
        for (int at = 0; at < 4; at++) sums[at] = forward_wide(sums[at], by, bytes + 64 * at);
    }
    return by_carryless(by_carryless(0, (const uint8_t *)sums, sizeof sums), bytes, length);
}
#endif

#define BUILD(name) \
    static uint64_t name##_update(uint64_t crc, const void *bytes, size_t length) { \
        return ~name(~crc, bytes, length); \
    }

BUILD(by_table)
static const struct inlet_crc64nvme_build table = {"table", by_table_update};
#if defined(__x86_64__) || defined(__aarch64__)
BUILD(by_carryless)
static const struct inlet_crc64nvme_build carryless = {"carryless", by_carryless_update};
#endif
#if defined(__x86_64__)
BUILD(by_wide_carryless)
static const struct inlet_crc64nvme_build wide = {"wide carryless", by_wide_carryless_update};
#endif

const struct inlet_crc64nvme_build *inlet_crc64nvme_build(size_t index) {
    const struct inlet_crc64nvme_build *found[3] = {};
    size_t count = 0;
#if defined(__x86_64__)
    if (has_wide_carryless()) found[count++] = &wide;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (has_carryless()) found[count++] = &carryless;
#endif
    found[count++] = &table;
    return index < count ? found[index] : NULL;
}

uint64_t inlet_crc64nvme(uint64_t crc, const void *bytes, size_t length) {
    return inlet_crc64nvme_build(0)->update(crc, bytes, length);
}
