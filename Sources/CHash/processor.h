#pragma once

// What this processor can run.

#include <stdbool.h>

#if defined(__x86_64__)
static inline bool has_carryless(void) { return __builtin_cpu_supports("pclmul"); }

static inline bool has_wide_carryless(void) {
    return has_carryless() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

static inline bool has_carryless(void) { return getauxval(AT_HWCAP) & HWCAP_PMULL; }
#endif
