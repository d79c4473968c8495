#pragma once

#include <isa-l/crc.h>
#include <stddef.h>
#include <stdint.h>

/// Goes on with a CRC-32C (Castagnoli, RFC 3720 appendix B.4) over `length` bytes; the first call is given 0.
///
/// ISA-L leaves the inversions to its callers, takes an `int` and a pointer that is not const; it only reads.
static inline uint32_t inlet_crc32c(uint32_t crc, const void *_Nonnull bytes, size_t length) {
    const unsigned char *next = (const unsigned char *)bytes;
    crc = ~crc;
    while (length > 0) {
        int piece = length > (1 << 30) ? (1 << 30) : (int)length;
        crc = crc32_iscsi((unsigned char *)next, piece, crc);
        next += piece;
        length -= (size_t)piece;
    }
    return ~crc;
}
