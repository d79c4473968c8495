/* A discarding HTTP/1.1 server with S3-shaped answers, for measurements: one thread, one epoll loop, nothing kept.
 *
 *     cc -O2 -o s3_sink s3_sink.c && ./s3_sink [--port N] [--delay MS]        prints "listening PORT"
 *
 * PUT /bucket/key                      200 with an ETag
 * PUT ?partNumber=N&uploadId=I         200 with an ETag
 * POST ?uploads                        InitiateMultipartUploadResult
 * POST ?uploadId=I                     CompleteMultipartUploadResult
 * HEAD, GET                            404, so that nobody thinks that anything is there already (a bucket itself: 200)
 * DELETE                               204
 * POST /_/reset, GET /_/stats          zeroes and tells {"bytes", "puts", "cpu_seconds", "connections"}
 *
 * --delay holds back every answer, as a far-away store does. ETags are not MD5: measure with checks of sizes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 16 << 10, PIECE = 1 << 20, EVENTS = 256 };

struct connection {
    int fd;
    size_t filled;          /* bytes of a head that is not complete */
    int64_t body;           /* bytes of the body still to come */
    bool in_body, asks_continue;
    int64_t answer_at;      /* CLOCK_MONOTONIC ms; 0 = nothing waits */
    struct connection *next; /* in the line of delayed answers, which is in the order of time */
    int reply_length;
    char reply[1024];
    char head[HEAD + 1];
};

static char scratch[PIECE];
static int64_t bytes_in, puts_in, connections_made, delay_ms;
static double cpu_base;
static struct connection *first_delayed, *last_delayed;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void reply(struct connection *c, int status, const char *headers, const char *body, bool is_head) {
    c->reply_length = snprintf(c->reply, sizeof c->reply, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n%s", status,
                               strlen(body), headers, is_head ? "" : body);
}

/* Decides the answer from the request line; called once the body has gone by. */
static void decide(struct connection *c) {
    char method[8] = "", target[HEAD];
    target[0] = 0;
    sscanf(c->head, "%7s %16000s", method, target);
    const char *query = strchr(target, '?');
    const char *xml = "Content-Type: application/xml\r\n";
    char body[512];
    if (!strncmp(target, "/_/", 3)) {
        if (!strcmp(method, "POST")) {
            bytes_in = puts_in = connections_made = 0;
            cpu_base = cpu_seconds();
        }
        snprintf(body, sizeof body, "{\"bytes\": %lld, \"puts\": %lld, \"connections\": %lld, \"cpu_seconds\": %.3f}",
                 (long long)bytes_in, (long long)puts_in, (long long)connections_made, cpu_seconds() - cpu_base);
        reply(c, 200, "Content-Type: application/json\r\n", body, false);
    } else if (!strcmp(method, "PUT")) {
        puts_in++;
        reply(c, 200, "ETag: \"00000000000000000000000000000000\"\r\n", "", false);
    } else if (!strcmp(method, "POST") && query && strstr(query, "uploads")) {
        reply(c, 200, xml, "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>upload-1</UploadId></InitiateMultipartUploadResult>", false);
    } else if (!strcmp(method, "POST")) {
        reply(c, 200, xml, "<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key><ETag>&quot;0-1&quot;</ETag></CompleteMultipartUploadResult>", false);
    } else if (!strcmp(method, "DELETE")) {
        reply(c, 204, "", "", false);
    } else {
        const char *rest = strchr(target + 1, '/');
        bool is_bucket = !rest || !rest[1] || rest[1] == '?';
        if (is_bucket)
            reply(c, 200, xml, "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>", !strcmp(method, "HEAD"));
        else
            reply(c, 404, xml, "<Error><Code>NoSuchKey</Code><Message>discarded</Message></Error>", !strcmp(method, "HEAD"));
    }
}

static bool send_all(struct connection *c, const char *data, int length) {
    while (length > 0) {
        ssize_t n = send(c->fd, data, length, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue; /* answers are short: the buffer has room soon */
        if (n <= 0) return false;
        data += n;
        length -= n;
    }
    return true;
}

/* The request is over: answers, now or later. False when the connection is gone. */
static bool finish(struct connection *c) {
    decide(c);
    c->in_body = false;
    if (delay_ms == 0 || !strncmp(strchr(c->head, ' ') + 1, "/_/", 3)) return send_all(c, c->reply, c->reply_length);
    c->answer_at = now_ms() + delay_ms;
    c->next = NULL;
    if (last_delayed) last_delayed->next = c; else first_delayed = c;
    last_delayed = c;
    return true;
}

/* Takes a complete head out of the buffer. False when the connection must end. */
static bool begin(struct connection *c, char *end) {
    *end = 0;
    size_t head = end + 4 - c->head, rest = c->filled - head;
    c->body = 0;
    c->asks_continue = false;
    for (char *line = strstr(c->head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (!strncasecmp(line, "content-length:", 15)) c->body = atoll(line + 15);
        if (!strncasecmp(line, "expect:", 7)) c->asks_continue = true;
    }
    int64_t here = (int64_t)rest < c->body ? (int64_t)rest : c->body;
    c->body -= here;
    bytes_in += here;
    c->filled = 0; /* no pipelining: what follows the body is the next request */
    if (c->body == 0) return finish(c);
    c->in_body = true;
    return !c->asks_continue || send_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

/* False when the connection is over. */
static bool readable(struct connection *c) {
    while (!c->answer_at) {
        if (c->in_body) {
            /* On TCP, MSG_TRUNC takes bytes off the queue without copying them. */
            ssize_t n = recv(c->fd, scratch, c->body < PIECE ? c->body : PIECE, MSG_TRUNC);
            if (n < 0) return errno == EAGAIN || errno == EINTR;
            if (n == 0) return false;
            c->body -= n;
            bytes_in += n;
            if (c->body == 0 && !finish(c)) return false;
        } else {
            ssize_t n = recv(c->fd, c->head + c->filled, HEAD - c->filled, 0);
            if (n < 0) return errno == EAGAIN || errno == EINTR;
            if (n == 0) return false;
            c->filled += n;
            c->head[c->filled] = 0;
            char *end = memmem(c->head, c->filled, "\r\n\r\n", 4);
            if (!end && c->filled == HEAD) return false;
            if (end && !begin(c, end)) return false;
        }
    }
    return true;
}

static void leave(struct connection *c) {
    struct connection **link = &first_delayed, *before = NULL;
    for (; *link && *link != c; link = &(*link)->next) before = *link;
    if (*link) {
        *link = c->next;
        if (last_delayed == c) last_delayed = before;
    }
    close(c->fd);
    free(c);
}

/* Sends what is due. - Returns the milliseconds to the next one, or -1. */
static int answer_due(void) {
    while (first_delayed) {
        struct connection *c = first_delayed;
        int64_t wait = c->answer_at - now_ms();
        if (wait > 0) return (int)wait;
        first_delayed = c->next;
        if (!first_delayed) last_delayed = NULL;
        c->answer_at = 0;
        if (!send_all(c, c->reply, c->reply_length) || !readable(c)) leave(c);
    }
    return -1;
}

int main(int count, char **words) {
    int port = 0, on = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (!strcmp(words[i], "--port")) port = atoi(words[i + 1]);
        else if (!strcmp(words[i], "--delay")) delay_ms = atoi(words[i + 1]);
        else return fprintf(stderr, "usage: s3_sink [--port N] [--delay MS]\n"), 64;
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024)) return perror("s3_sink"), 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("listening %d\n", ntohs(address.sin_port));
    fflush(stdout);
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, ready[EVENTS];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int wait = answer_due();
        int found = epoll_wait(poll, ready, EVENTS, wait);
        for (int i = 0; i < found; i++) {
            struct connection *c = ready[i].data.ptr;
            if (c) {
                if (!readable(c)) leave(c);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            c = calloc(1, sizeof *c);
            if (!c) return 1;
            c->fd = fd;
            connections_made++;
            /* Edge-triggered: a connection whose answer waits is read again when it has been sent. */
            struct epoll_event mine = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
            epoll_ctl(poll, EPOLL_CTL_ADD, fd, &mine);
            if (!readable(c)) leave(c);
        }
    }
}
