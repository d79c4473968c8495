// The MD5 of LANES streams side by side, one in each lane of a vector: the function NAME. Included once for each width.

#define JOIN_NAMES(first, second) first##_##second
#define NAMED(first, second) JOIN_NAMES(first, second)
#define words NAMED(NAME, words)
#define load_row NAMED(NAME, load_row)
#define load NAMED(NAME, load)

typedef uint32_t words __attribute__((vector_size(4 * LANES)));

// Within each group of four lanes: two words of each of two rows, the first (half 0) or last (half 1). SINGLES takes
// them in turns, PAIRS one pair after the other.
#define SINGLES(group, half) \
    4 * group + 2 * half, LANES + 4 * group + 2 * half, 4 * group + 2 * half + 1, LANES + 4 * group + 2 * half + 1
#define PAIRS(group, half) \
    4 * group + 2 * half, 4 * group + 2 * half + 1, LANES + 4 * group + 2 * half, LANES + 4 * group + 2 * half + 1
#if LANES == 16
#define IN_GROUPS(order, half) order(0, half), order(1, half), order(2, half), order(3, half)
#else
#define IN_GROUPS(order, half) order(0, half), order(1, half)
#endif
#define MIX(order, half, one, other) __builtin_shufflevector(one, other, IN_GROUPS(order, half))

/// Four words of every fourth lane, one after the other.
static inline void load_row(words *row, const uint8_t *const bytes[], size_t place) {
    for (int group = 0; group < LANES / 4; group++) memcpy((uint8_t *)row + 16 * group, bytes[4 * group] + place, 16);
}

/// One block of every lane: `block[n]` has the n-th word of each.
static inline void load(words block[16], const uint8_t *const bytes[], size_t place) {
    for (int at = 0; at < 16; at += 4, place += 16) {
        words rows[4];
        for (int lane = 0; lane < 4; lane++) load_row(&rows[lane], bytes + lane, place);
        words low = MIX(SINGLES, 0, rows[0], rows[1]), high = MIX(SINGLES, 1, rows[0], rows[1]);
        words other_low = MIX(SINGLES, 0, rows[2], rows[3]), other_high = MIX(SINGLES, 1, rows[2], rows[3]);
        block[at] = MIX(PAIRS, 0, low, other_low);
        block[at + 1] = MIX(PAIRS, 1, low, other_low);
        block[at + 2] = MIX(PAIRS, 0, high, other_high);
        block[at + 3] = MIX(PAIRS, 1, high, other_high);
    }
}

static void NAME(void *const contexts[], const uint8_t *const bytes[], size_t blocks) {
    words a, b, c, d;
    for (int lane = 0; lane < LANES; lane++) {
        const MD5_CTX *context = contexts[lane];
        a[lane] = context->A, b[lane] = context->B, c[lane] = context->C, d[lane] = context->D;
    }
    for (size_t at = 0; at < blocks; at++) {
        words block[16], was_a = a, was_b = b, was_c = c, was_d = d;
        load(block, bytes, 64 * at);
#pragma clang loop unroll(full)
        for (int step = 0; step < 64; step++) {
            int round = step / 16;
            words mixed = round == 0   ? d ^ (b & (c ^ d))
                          : round == 1 ? c ^ (d & (b ^ c))
                          : round == 2 ? b ^ (c ^ d)
                                       : c ^ (b | ~d);
            words sum = mixed + (a + (block[(FACTORS[round] * step + OFFSETS[round]) % 16] + SINES[step]));
            int turn = TURNS[round][step % 4];
            a = d, d = c, c = b;
            b += sum << turn | sum >> (32 - turn);
        }
        a += was_a, b += was_b, c += was_c, d += was_d;
    }
    for (int lane = 0; lane < LANES; lane++) {
        MD5_CTX *context = contexts[lane];
        context->A = a[lane], context->B = b[lane], context->C = c[lane], context->D = d[lane];
        count_blocks(context, blocks);
    }
}

#undef words
#undef load_row
#undef load
#undef JOIN_NAMES
#undef NAMED
#undef SINGLES
#undef PAIRS
#undef IN_GROUPS
#undef MIX
