#include "processor.h"
#include "streams.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#if defined(__x86_64__)
#include <immintrin.h>

// SHA-256 (FIPS 180-4) with the processor's own instructions, of two streams at once. Each instruction waits for the
// one before it of its own stream, so a second stream costs almost nothing.

static const uint32_t ROOTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define SHA __attribute__((target("sha,sse4.1")))
#define EACH_STREAM _Pragma("clang loop unroll(full)") for (int stream = 0; stream < 2; stream++)

static void count_blocks(SHA256_CTX *context, size_t blocks) {
    uint64_t bits = ((uint64_t)context->Nh << 32 | context->Nl) + (uint64_t)blocks * 512;
    context->Nl = (SHA_LONG)bits, context->Nh = (SHA_LONG)(bits >> 32);
}

/// Sixteen times four steps. The instructions keep the words A, B, E, F in one register and C, D, G, H in another.
static inline SHA void steps(__m128i abef[2], __m128i cdgh[2], __m128i words[2][4]) {
#pragma clang loop unroll(full)
    for (int at = 0; at < 16; at++) {
        EACH_STREAM {
            __m128i *now = &words[stream][at % 4], next = words[stream][(at + 1) % 4];
            __m128i later = words[stream][(at + 2) % 4], last = words[stream][(at + 3) % 4];
            __m128i sum = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)&ROOTS[4 * at]));
            cdgh[stream] = _mm_sha256rnds2_epu32(cdgh[stream], abef[stream], sum);
            abef[stream] = _mm_sha256rnds2_epu32(abef[stream], cdgh[stream], _mm_shuffle_epi32(sum, 0x0e));
            if (at >= 12) continue;
            __m128i early = _mm_add_epi32(_mm_sha256msg1_epu32(*now, next), _mm_alignr_epi8(last, later, 4));
            *now = _mm_sha256msg2_epu32(early, last);
        }
    }
}

static SHA void pairs(void *const contexts[], const uint8_t *const bytes[], size_t blocks) {
    const __m128i reversed = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abef[2], cdgh[2], words[2][4];
    EACH_STREAM {
        const __m128i *hash = (const __m128i *)((SHA256_CTX *)contexts[stream])->h;
        __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(hash), 0xb1);
        __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(hash + 1), 0x1b);
        abef[stream] = _mm_alignr_epi8(cdab, efgh, 8), cdgh[stream] = _mm_blend_epi16(efgh, cdab, 0xf0);
    }
    for (size_t at = 0; at < blocks; at++) {
        __m128i was_abef[2] = {abef[0], abef[1]}, was_cdgh[2] = {cdgh[0], cdgh[1]};
        EACH_STREAM for (int word = 0; word < 4; word++) {
            const void *place = bytes[stream] + BLOCK * at + 16 * word;
            words[stream][word] = _mm_shuffle_epi8(_mm_loadu_si128(place), reversed);
        }
        steps(abef, cdgh, words);
        EACH_STREAM {
            abef[stream] = _mm_add_epi32(abef[stream], was_abef[stream]);
            cdgh[stream] = _mm_add_epi32(cdgh[stream], was_cdgh[stream]);
        }
    }
    EACH_STREAM {
        SHA256_CTX *context = contexts[stream];
        __m128i feba = _mm_shuffle_epi32(abef[stream], 0x1b), dchg = _mm_shuffle_epi32(cdgh[stream], 0xb1);
        _mm_storeu_si128((__m128i *)context->h, _mm_blend_epi16(feba, dchg, 0xf0));
        _mm_storeu_si128((__m128i *)context->h + 1, _mm_alignr_epi8(dchg, feba, 8));
        count_blocks(context, blocks);
    }
}
#endif

static size_t pending(const void *context) { return ((const SHA256_CTX *)context)->num; }

static void update(void *context, const void *bytes, size_t length) { SHA256_Update(context, bytes, length); }

static const struct way single_way = {"single", 1, NULL, pending, update, NULL};
#if defined(__x86_64__)
static const struct way pairs_way = {"pairs", 2, pairs, pending, update, NULL};
#endif

static const struct way *way(size_t index) {
    const struct way *found[2] = {};
    size_t count = 0;
#if defined(__x86_64__)
    if (has_sha()) found[count++] = &pairs_way;
#endif
    found[count++] = &single_way;
    return index < count ? found[index] : NULL;
}

const char *inlet_sha256_build(size_t index) { return way_name(way(index)); }

void inlet_sha256_update(size_t build, const struct inlet_stream *streams, size_t count) {
    update_side_by_side(way(build), streams, count);
}
