/* One connection: its bytes, plain or through TLS, cut into requests. */
#define _GNU_SOURCE
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "sink.h"

struct counts counted;
int64_t sending;

int64_t add(int64_t *count, int64_t more) { return __atomic_add_fetch(count, more, __ATOMIC_RELAXED); }

static void wait_for(struct connection *c, short what) { poll(&(struct pollfd){.fd = c->fd, .events = what}, 1, 1000); }

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool wants_more(int why) { return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ; }

static bool send_all(struct connection *c, const char *data, size_t length) {
    while (length > 0) {
        ERR_clear_error();
        ssize_t n = c->tls ? SSL_write(c->tls, data, (int)length) : send(c->fd, data, length, MSG_NOSIGNAL);
        if (n <= 0) {
            int why = c->tls ? SSL_get_error(c->tls, (int)n) : 0;
            bool is_full = c->tls ? wants_more(why) : errno == EAGAIN || errno == EINTR;
            if (!is_full) return false;
            wait_for(c, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
            continue;
        }
        data += n;
        length -= (size_t)n;
    }
    return true;
}

/* Bytes taken; 0 when the connection is over; -1 when there is nothing now. On TCP, MSG_TRUNC takes bytes off the queue
 * without copying them. */
static ssize_t take(struct connection *c, char *into, size_t room, bool is_discarded) {
    if (!c->tls) {
        ssize_t n = recv(c->fd, into, room, is_discarded ? MSG_TRUNC : 0);
        return n < 0 && errno != EAGAIN && errno != EINTR ? 0 : n;
    }
    ERR_clear_error();
    int n = SSL_read(c->tls, into, (int)room);
    if (n > 0) return n;
    return wants_more(SSL_get_error(c->tls, n)) ? -1 : 0;
}

enum fate send_answer(struct connection *c) { return send_all(c, c->answer.bytes, c->answer.length) ? OPEN : OVER; }

/* A connection counts from its first request on; one that only asks for counts does not. */
static void count(struct connection *c) {
    c->is_counted = true;
    add(&counted.connections, 1);
    if (!c->tls) return;
    add(&counted.handshakes, 1);
    add(&counted.resumed, SSL_session_reused(c->tls));
}

enum fate finish(struct connection *c) {
    bool is_question = strstr(c->head, " /_/") != NULL;
    if (c->in_body) add(&sending, -1);
    c->in_body = false;
    if (is_held(c)) return LENT;
    if (!c->is_counted && !is_question) count(c);
    if (!strncmp(c->head, "PUT ", 4)) add(&counted.puts, 1);
    decide(c);
    if (settings.delay_ms == 0 || is_question) return send_answer(c);
    delay(c);
    return LENT;
}

static bool is_hashed(const struct connection *c) { return c->has_md5 || c->has_crc[CRC32C] || c->has_crc[CRC64NVME]; }

/* A piece of the body, counted. */
static void swallow(struct connection *c, const char *piece, size_t length) {
    c->body -= (int64_t)length;
    if (c->has_md5) EVP_DigestUpdate(c->sum, piece, length);
    for (int kind = 0; kind < CRCS; kind++)
        if (c->has_crc[kind]) c->crc[kind] = crc_more(kind, c->crc[kind], piece, length);
    if (is_hashed(c)) add(&counted.hashed, (int64_t)length);
    if (!c->kept) {
        add(&counted.bytes, (int64_t)length);
        return;
    }
    memcpy(c->kept + c->kept_length, piece, length);
    c->kept_length += length;
    c->kept[c->kept_length] = 0;
}

/* Takes a complete head out of the buffer. */
static enum fate begin(struct connection *c, char *end) {
    char length[32], expect[32];
    size_t rest = c->filled - (size_t)(end + 4 - c->head);
    end[2] = 0;
    header_value(c->head, "content-length", length, sizeof length);
    header_value(c->head, "expect", expect, sizeof expect);
    c->body = c->length = atoll(length);
    c->filled = 0; /* no pipelining: what follows the body is the next request */
    free(c->kept);
    c->kept = NULL;
    c->kept_length = 0;
    prepare(c);
    if (c->has_md5) EVP_DigestInit_ex(c->sum, EVP_md5(), NULL);
    if (c->body > 0 && !strncmp(c->head, "POST ", 5)) {
        if (c->body > KEPT_ROOM || !(c->kept = malloc((size_t)c->body + 1))) return OVER;
        c->kept[0] = 0;
    }
    swallow(c, end + 4, (int64_t)rest < c->body ? rest : (size_t)c->body);
    if (c->body == 0) return finish(c);
    c->in_body = true;
    add(&sending, 1);
    return !expect[0] || send_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25) ? OPEN : OVER;
}

enum fate serve(struct connection *c, char *scratch) {
    enum fate fate = OPEN;
    while (fate == OPEN) {
        bool is_thrown = c->in_body && !is_hashed(c) && !c->kept;
        char *into = c->in_body ? scratch : c->head + c->filled;
        size_t room = c->in_body ? (size_t)(c->body < PIECE ? c->body : PIECE) : HEAD_ROOM - c->filled;
        ssize_t n = take(c, into, room, is_thrown);
        if (n <= 0) return n < 0 ? OPEN : OVER;
        if (c->in_body) {
            swallow(c, scratch, (size_t)n);
            if (c->body == 0) fate = finish(c);
            continue;
        }
        if (c->filled == 0) c->first_ns = now_ns();
        c->filled += (size_t)n;
        c->head[c->filled] = 0;
        char *end = memmem(c->head, c->filled, "\r\n\r\n", 4);
        if (end) fate = begin(c, end);
        else if (c->filled == HEAD_ROOM) return OVER;
    }
    return fate;
}
