#pragma once

#include <stddef.h>
#include <stdint.h>

// Each function has several builds, each for some instructions. The first one is the fastest that this processor can
// run; tests run them all.

/// Goes on with a CRC-64/NVME over `length` bytes; the first call is given 0.
uint64_t inlet_crc64nvme(uint64_t crc, const void *_Nullable bytes, size_t length);

/// A build of `inlet_crc64nvme`.
struct inlet_crc64nvme_build {
    const char *_Nonnull name;
    uint64_t (*_Nonnull update)(uint64_t crc, const void *_Nullable bytes, size_t length);
};

/// The build with this index among those that this processor can run, the fastest first; NULL after the last.
const struct inlet_crc64nvme_build *_Nullable inlet_crc64nvme_build(size_t index);

/// The next bytes of one stream. Its context is libcrypto's: an `MD5_CTX` or a `SHA256_CTX`.
struct inlet_stream {
    void *_Nonnull context;
    const void *_Nullable bytes;
    size_t length;
};

/// Goes on with the MD5s of several streams, side by side. Their lengths may differ.
///
/// - Parameter build: 0 is the fastest; an index of `inlet_md5_build`.
void inlet_md5_update(size_t build, const struct inlet_stream *_Nullable streams, size_t count);

/// The name of this build among those that this processor can run; NULL after the last.
const char *_Nullable inlet_md5_build(size_t index);

/// The same for SHA-256s.
void inlet_sha256_update(size_t build, const struct inlet_stream *_Nullable streams, size_t count);
const char *_Nullable inlet_sha256_build(size_t index);
