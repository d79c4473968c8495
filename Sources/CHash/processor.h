#pragma once

// What this processor can run.

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool has_carryless(void) { return __builtin_cpu_supports("pclmul"); }

static inline bool has_wide_carryless(void) {
    return has_carryless() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

static inline bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }

static inline bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw");
}

/// Whether it has instructions for SHA-256. Not every compiler's `__builtin_cpu_supports` knows them, and a virtual
/// machine takes microseconds for CPUID: it is asked once.
static inline bool has_sha(void) {
    static _Atomic int known = -1;
    if (known < 0) {
        unsigned a, b, c, d;
        known = __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
    }
    return known > 0;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

static inline bool has_carryless(void) { return getauxval(AT_HWCAP) & HWCAP_PMULL; }
#endif
