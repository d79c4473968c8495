/* A discarding HTTP/1.1 server with S3-shaped answers, for measurements. It keeps names and sizes, no bodies.
 *
 *     cc -O2 -o s3_sink *.c -lssl -lcrypto -lpthread
 *     ./s3_sink [--port N] [--delay MS] [--etag size|md5] [--checksums echo|compare] [--sums FILE] [--threads N]
 *               [--conditions ignore|enforce] [--log no|yes] [--cert FILE --key FILE]
 *
 * Prints "listening PORT".
 *
 * PUT, POST ?uploads, POST ?uploadId, DELETE, HEAD and ranged GET as S3 has them; POST /v1/… as the Spiral Storage API, whose
 * key is `bench`. GET /_/stats tells what came since POST /_/reset, GET /_/objects lists it, GET /_/first?key=KEY tells when the
 * first byte of a PUT came (CLOCK_MONOTONIC ns; 0: it has not come whole).
 *
 * POST /_/hold?count=N holds the next PUT of a part whose upload has N parts, until POST /_/release: then it counts, unless
 * its client is gone. GET /_/held names the access key of its client. POST /_/refuse?count=N: the next N uploads that are ended
 * are ended, and answered with 412.
 *
 * --etag md5            ETags are the bodies' MD5. Without it bodies are not hashed, and over plain TCP never leave
 *                       the kernel.
 * --checksums compare   CRC-32C and CRC-64/NVME that a client states are compared: a wrong one is refused, a right one
 *                       confirmed. Without it each one is said back.
 * --sums                what bodies hash to, by name, part and size. These are thrown away unhashed; all others are hashed.
 * --delay               holds back every answer, as a far-away store does, and no other connection.
 * --conditions enforce  `If-None-Match: *` holds for PUT and for the end of an upload. Without it nobody looks at it.
 * --log yes             GET /_/requests lists what was answered: NS (of the first byte) STATUS METHOD ACCESS-KEY PATH QUERY.
 * --cert                TLS, with session tickets.
 *
 * Threads (one for each core) share one epoll: whoever is free takes the next connection that has something.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sink.h"

enum { TLS_READ = 256 << 10 };

struct settings settings;
static int listener, epoll;
static SSL_CTX *tls;
static double cpu_base;
static pthread_mutex_t delayed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t delayed_one = PTHREAD_COND_INITIALIZER;
static struct connection *first_delayed, *last_delayed;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct counts counts_now(void) {
    struct counts now = counted;
    now.cpu_seconds = cpu_seconds() - cpu_base;
    return now;
}

void counts_reset(void) {
    counted = (struct counts){0};
    cpu_base = cpu_seconds();
}

void delay(struct connection *c) {
    c->answer_at = now_ms() + settings.delay_ms;
    c->next = NULL;
    pthread_mutex_lock(&delayed_lock);
    if (last_delayed) last_delayed->next = c; else first_delayed = c;
    last_delayed = c;
    pthread_cond_signal(&delayed_one);
    pthread_mutex_unlock(&delayed_lock);
}

/* Gives a connection back to the epoll, or ends it. One whose answer waits belongs to the line of those. */
static void put_back(struct connection *c, enum fate fate) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};
    if (fate == OPEN) epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
    if (fate != OVER) return;
    if (c->in_body) {
        add(&sending, -1);
        add(&counted.cut, 1);
    }
    if (c->tls) SSL_free(c->tls);
    EVP_MD_CTX_free(c->sum);
    close(c->fd);
    free(c->kept);
    free(c->answer.bytes);
    free(c);
}

static void *send_delayed(void *unused) {
    for (;;) {
        pthread_mutex_lock(&delayed_lock);
        while (!first_delayed) pthread_cond_wait(&delayed_one, &delayed_lock);
        struct connection *c = first_delayed;
        first_delayed = c->next;
        if (!first_delayed) last_delayed = NULL;
        pthread_mutex_unlock(&delayed_lock);
        int64_t wait = c->answer_at - now_ms();
        if (wait > 0) poll(NULL, 0, (int)wait);
        /* What the client sends next is for the other threads: nothing here may hold up the line. */
        put_back(c, send_answer(c));
    }
    return unused;
}

/* A client that has closed its end sent nothing that counts. */
static bool is_gone(const struct connection *c) {
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

void release(void) {
    for (struct connection *c = take_held(), *next; c; c = next) {
        next = c->next;
        put_back(c, is_gone(c) ? OVER : finish(c));
    }
}

static void accept_all(void) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        struct connection *c = calloc(1, sizeof *c);
        if (!c || !(c->sum = EVP_MD_CTX_new())) abort();
        c->fd = fd;
        if (tls) {
            c->tls = SSL_new(tls);
            SSL_set_fd(c->tls, fd);
            SSL_set_accept_state(c->tls);
        }
        event.data.ptr = c;
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
    event.data.ptr = NULL;
    epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event);
}

static void *work(void *unused) {
    char *scratch = malloc(PIECE);
    struct epoll_event ready;
    while (scratch) {
        if (epoll_wait(epoll, &ready, 1, -1) < 1) continue;
        struct connection *c = ready.data.ptr;
        if (c) put_back(c, serve(c, scratch)); else accept_all();
    }
    return unused;
}

static bool set_up_tls(const char *certificate, const char *key) {
    tls = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(tls, 1);
    SSL_CTX_set_default_read_buffer_len(tls, TLS_READ);
    SSL_CTX_set_session_id_context(tls, (const unsigned char *)"sink", 4);
    return SSL_CTX_use_certificate_chain_file(tls, certificate) == 1
           && SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) == 1;
}

static bool open_listener(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024)) return false;
    getsockname(listener, (struct sockaddr *)&address, &length);
    snprintf(settings.origin, sizeof settings.origin, "%s://127.0.0.1:%d", tls ? "https" : "http", ntohs(address.sin_port));
    printf("listening %d\n", ntohs(address.sin_port));
    return fflush(stdout) == 0;
}

int main(int count, char **words) {
    const char *certificate = NULL, *key = NULL, *sums = NULL;
    long port = 0, threads = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (!strcmp(words[i], "--port")) port = atoi(value);
        else if (!strcmp(words[i], "--delay")) settings.delay_ms = atoi(value);
        else if (!strcmp(words[i], "--threads")) threads = atoi(value);
        else if (!strcmp(words[i], "--etag")) settings.has_md5 = !strcmp(value, "md5");
        else if (!strcmp(words[i], "--checksums")) settings.is_comparing = !strcmp(value, "compare");
        else if (!strcmp(words[i], "--conditions")) settings.is_conditional = !strcmp(value, "enforce");
        else if (!strcmp(words[i], "--log")) settings.is_logging = !strcmp(value, "yes");
        else if (!strcmp(words[i], "--sums")) sums = value;
        else if (!strcmp(words[i], "--cert")) certificate = value;
        else if (!strcmp(words[i], "--key")) key = value;
        else return fprintf(stderr, "s3_sink: what is %s?\n", words[i]), 64;
    }
    signal(SIGPIPE, SIG_IGN);
    if (certificate && key && !set_up_tls(certificate, key))
        return fprintf(stderr, "s3_sink: no certificate in %s\n", certificate), 1;
    if (sums && !table_read(sums)) return fprintf(stderr, "s3_sink: no sums in %s\n", sums), 1;
    epoll = epoll_create1(0);
    if (!open_listener((int)port)) return perror("s3_sink"), 1;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    pthread_t thread;
    pthread_create(&thread, NULL, send_delayed, NULL);
    for (long number = 1; number < threads; number++) pthread_create(&thread, NULL, work, NULL);
    work(NULL);
}
