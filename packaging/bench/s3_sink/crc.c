/* CRC-32C and CRC-64/NVME: what S3 lets a client state of a body, or of the parts of a body. */
#include <string.h>

#include "sink.h"

enum { SLICES = 8 };

/* Reflected, as S3 has them: begins with ones and ends inverted. `one` is the polynomial 1. */
static const struct {
    uint64_t polynomial, one;
} KINDS[CRCS] = {{0x82f63b78, 1u << 31}, {0x9a6c9329ac4bc9b5, 1ull << 63}};
static uint64_t tables[CRCS][SLICES][256];

__attribute__((constructor)) static void make_tables(void) {
    for (int kind = 0; kind < CRCS; kind++) {
        for (int byte = 0; byte < 256; byte++) {
            uint64_t crc = (uint64_t)byte;
            for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? KINDS[kind].polynomial : 0);
            tables[kind][0][byte] = crc;
        }
        for (int byte = 0; byte < 256 * (SLICES - 1); byte++) {
            uint64_t crc = tables[kind][byte >> 8][byte & 255];
            tables[kind][(byte >> 8) + 1][byte & 255] = crc >> 8 ^ tables[kind][0][crc & 255];
        }
    }
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static uint64_t by_instruction(uint64_t crc, const unsigned char *bytes, size_t words) {
    for (uint64_t word; words-- > 0; bytes += 8) {
        memcpy(&word, bytes, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    return crc;
}
#endif

static uint64_t by_table(int kind, uint64_t crc, const unsigned char *bytes, size_t words) {
    const uint64_t (*table)[256] = (const uint64_t (*)[256])tables[kind];
    for (uint64_t word; words-- > 0; bytes += 8) {
        memcpy(&word, bytes, 8);
        word ^= crc;
        crc = 0;
        for (int at = 0; at < SLICES; at++) crc ^= table[SLICES - 1 - at][word >> 8 * at & 255];
    }
    return crc;
}

uint64_t crc_more(int kind, uint64_t crc, const void *data, size_t length) {
    const unsigned char *bytes = data;
    size_t words = length / 8;
    uint64_t mask = KINDS[kind].one * 2 - 1;
    crc ^= mask;
#ifdef __x86_64__
    if (kind == CRC32C && __builtin_cpu_supports("sse4.2")) crc = by_instruction(crc, bytes, words);
    else
#endif
        crc = by_table(kind, crc, bytes, words);
    for (size_t at = words * 8; at < length; at++) crc = crc >> 8 ^ tables[kind][0][(crc ^ bytes[at]) & 255];
    return crc ^ mask;
}

static uint64_t times(int kind, uint64_t a, uint64_t b) {
    uint64_t product = 0;
    for (uint64_t bit = KINDS[kind].one; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = b >> 1 ^ (b & 1 ? KINDS[kind].polynomial : 0);
    }
    return product;
}

uint64_t crc_join(int kind, uint64_t first, uint64_t second, int64_t length) {
    for (uint64_t power = KINDS[kind].one >> 8; length; length >>= 1, power = times(kind, power, power))
        if (length & 1) first = times(kind, first, power);
    return first ^ second;
}
