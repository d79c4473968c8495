#pragma once

#include <stddef.h>
#include <stdint.h>

// Each function has several builds, each for some instructions. A call without a name takes the fastest one that this
// processor can run; tests run them all.

/// Goes on with a CRC-64/NVME over `length` bytes; the first call is given 0.
uint64_t inlet_crc64nvme(uint64_t crc, const void *_Nullable bytes, size_t length);

/// A build of `inlet_crc64nvme`.
struct inlet_crc64nvme_build {
    const char *_Nonnull name;
    uint64_t (*_Nonnull update)(uint64_t crc, const void *_Nullable bytes, size_t length);
};

/// The build with this index among those that this processor can run, the fastest first; NULL after the last.
const struct inlet_crc64nvme_build *_Nullable inlet_crc64nvme_build(size_t index);
