#include "streams.h"

static void skip(struct inlet_stream *stream, size_t length) {
    stream->bytes = (const uint8_t *)stream->bytes + length;
    stream->length -= length;
}

/// Hashes the end of a block that an earlier call began.
static void finish_block(const struct way *way, struct inlet_stream *stream) {
    size_t pending = way->pending(stream->context), head = pending > 0 ? BLOCK - pending : 0;
    if (head > stream->length) head = stream->length;
    if (head > 0) way->update(stream->context, stream->bytes, head);
    skip(stream, head);
}

/// Moves all lanes on by as many blocks as the shortest has.
static void move(const struct way *way, struct inlet_stream lanes[], size_t used) {
    _Alignas(16) uint8_t nobody[LARGEST_CONTEXT] = {};
    void *contexts[MOST_LANES];
    const uint8_t *bytes[MOST_LANES];
    size_t blocks = SIZE_MAX;
    if (way->narrower && used <= way->narrower->width) way = way->narrower;
    for (size_t lane = 0; lane < way->width; lane++) {
        contexts[lane] = lane < used ? lanes[lane].context : nobody;
        bytes[lane] = lanes[lane < used ? lane : 0].bytes;
        if (lane < used && lanes[lane].length / BLOCK < blocks) blocks = lanes[lane].length / BLOCK;
    }
    way->blocks(contexts, bytes, blocks);
    for (size_t lane = 0; lane < used; lane++) skip(&lanes[lane], blocks * BLOCK);
}

void update_side_by_side(const struct way *way, const struct inlet_stream *streams, size_t count) {
    struct inlet_stream lanes[MOST_LANES];
    size_t used = 0, next = 0;
    do {
        while (used < way->width && next < count) {
            lanes[used] = streams[next++];
            finish_block(way, &lanes[used++]);
        }
        // A lane that is left alone is faster on its own.
        bool is_alone = used == 1 && (next == count || way->width == 1);
        for (size_t lane = used; lane-- > 0;) {
            if (lanes[lane].length >= BLOCK && !is_alone) continue;
            if (lanes[lane].length > 0) way->update(lanes[lane].context, lanes[lane].bytes, lanes[lane].length);
            lanes[lane] = lanes[--used];
        }
        if (used > 0) move(way, lanes, used);
    } while (used > 0 || next < count);
}
