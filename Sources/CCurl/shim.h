#ifndef INLET_CCURL_SHIM_H
#define INLET_CCURL_SHIM_H

#include <arpa/inet.h>
#include <curl/curl.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* libcurl's setters and getters are variadic, which Swift cannot call: one wrapper per value type. */

static inline CURLcode inlet_curl_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode inlet_curl_set_offset(CURL *_Nonnull easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode inlet_curl_set_string(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode inlet_curl_set_list(
    CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable list) {
    return curl_easy_setopt(easy, option, list);
}

static inline CURLcode inlet_curl_set_share(CURL *_Nonnull easy, CURLSH *_Nonnull share) {
    return curl_easy_setopt(easy, CURLOPT_SHARE, share);
}

/* No locks: the handles that share are used by one thread. */
static inline CURLSHcode inlet_curl_share_sessions(CURLSH *_Nonnull share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

static inline CURLcode inlet_curl_set_error_buffer(CURL *_Nonnull easy, char *_Nonnull buffer) {
    return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

/* The same context goes to every callback of a transfer. */
static inline CURLcode inlet_curl_set_callbacks(
    CURL *_Nonnull easy, void *_Nonnull context, curl_write_callback _Nonnull body,
    curl_write_callback _Nonnull header, curl_xferinfo_callback _Nonnull progress) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    return code;
}

static inline CURLcode inlet_curl_set_upload(
    CURL *_Nonnull easy, void *_Nonnull context, curl_read_callback _Nonnull read, curl_seek_callback _Nonnull seek) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return code;
}

/* A body that libcurl copies and sends in one piece with the header. */
static inline CURLcode inlet_curl_set_body(CURL *_Nonnull easy, const void *_Nonnull body, curl_off_t length) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
    return code;
}

/* Frees libcurl's copy of a body. */
static inline CURLcode inlet_curl_drop_body(CURL *_Nonnull easy) {
    return curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, NULL);
}

/* CURLOPT_PROTOCOLS is deprecated from 7.85 on, where its replacement begins. */
static inline CURLcode inlet_curl_allow_http_only(CURL *_Nonnull easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static inline CURLcode inlet_curl_allow_mail_only(CURL *_Nonnull easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS));
#endif
}

/* Without it, giving up a transfer waits for a running getaddrinfo(3); there from 7.87 on. */
static inline CURLcode inlet_curl_leave_resolver(CURL *_Nonnull easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
    return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)easy;
    return CURLE_OK;
#endif
}

static inline long inlet_curl_status(CURL *_Nonnull easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Status of the proxy's last answer to CONNECT; 0 when there was none. */
static inline long inlet_curl_connect_status(CURL *_Nonnull easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return status;
}

/* Microseconds from the start until the request could be sent; 0 while still connecting. */
static inline curl_off_t inlet_curl_time_to_send(CURL *_Nonnull easy) {
    curl_off_t time = 0;
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &time);
    return time;
}

/* Bytes that the kernel has taken from us and the peer has not acknowledged (SIOCOUTQ, tcp(7)); -1 if unknown. */
static inline int inlet_curl_unacknowledged(CURL *_Nonnull easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    int count = -1;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) || socket == CURL_SOCKET_BAD) return -1;
    return ioctl(socket, SIOCOUTQ, &count) ? -1 : count;
}

/* The other end's address, where a connection was made for this transfer; NULL where one was used again. */
static inline const char *_Nullable inlet_curl_new_address(CURL *_Nonnull easy) {
    long made = 0;
    const char *address = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made) || made < 1) return NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address) ? NULL : address;
}

/* `open` is asked before each connection that is made, `use` before the request goes over any (7.80). */
static inline CURLcode inlet_curl_set_address_guard(
    CURL *_Nonnull easy, void *_Nonnull context, curl_opensocket_callback _Nonnull open,
    curl_prereq_callback _Nonnull use) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, use);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return code;
}

static inline const void *_Nonnull inlet_curl_socket_address(const struct curl_sockaddr *_Nonnull address) {
    return &address->addr;
}

static inline curl_socket_t inlet_curl_open_socket(const struct curl_sockaddr *_Nonnull address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* CURL_SOCKET_BAD, a macro that Swift does not see. */
static inline curl_socket_t inlet_no_socket(void) { return CURL_SOCKET_BAD; }

/* The bytes of a socket's address: 4, 16, 0 for a Unix socket, -1 for others. */
static inline int inlet_socket_address_bytes(const void *_Nonnull address, unsigned char *_Nonnull sixteen) {
    switch (((const struct sockaddr *)address)->sa_family) {
    case AF_INET:
        memcpy(sixteen, &((const struct sockaddr_in *)address)->sin_addr, 4);
        return 4;
    case AF_INET6:
        memcpy(sixteen, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
        return 16;
    case AF_UNIX:
        return 0;
    default:
        return -1;
    }
}

/* The same as text; empty for others. */
static inline void inlet_socket_address_text(
    const void *_Nonnull address, char *_Nonnull text, unsigned int size) {
    unsigned char bytes[16];
    int count = inlet_socket_address_bytes(address, bytes);
    text[0] = 0;
    if (count > 0) inet_ntop(count == 4 ? AF_INET : AF_INET6, bytes, text, size);
}

/* The peer's own certificate in PEM, after CURLOPT_CERTINFO; owned by the handle. */
static inline const char *_Nullable inlet_curl_certificate(CURL *_Nonnull easy) {
    struct curl_certinfo *chain = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) || !chain || chain->num_of_certs < 1) return NULL;
    for (struct curl_slist *line = chain->certinfo[0]; line; line = line->next) {
        if (!strncmp(line->data, "Cert:", 5)) return line->data + 5;
    }
    return NULL;
}

/* One of its facts, such as "Issuer:", as libcurl's TLS library words it; owned by the handle. */
static inline const char *_Nullable inlet_curl_certificate_fact(CURL *_Nonnull easy, const char *_Nonnull name) {
    struct curl_certinfo *chain = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) || !chain || chain->num_of_certs < 1) return NULL;
    for (struct curl_slist *line = chain->certinfo[0]; line; line = line->next) {
        if (!strncmp(line->data, name, strlen(name))) return line->data + strlen(name);
    }
    return NULL;
}

/* What libcurl says of a connection as it makes it: the only place where it names the TLS version. */
static inline CURLcode inlet_curl_set_remarks(
    CURL *_Nonnull easy, void *_Nonnull context, curl_debug_callback _Nonnull remark) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, remark);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_DEBUGDATA, context);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    return code;
}

static inline CURLMcode inlet_curl_multi_set_long(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/* How a thread waits for its requests: by epoll(7) and curl_multi_socket_action(3). A turn costs what happens in it, not
   what waits: curl_multi_perform(3) looks at every request each time. */
typedef struct {
    CURLM *_Nonnull multi;
    /* The epoll instance, and the eventfd(2) by which other threads end a wait. */
    int events, wake;
    /* When libcurl wants to be called without an event, in milliseconds of CLOCK_MONOTONIC; -1 for never. */
    int64_t due;
} inlet_curl_loop;

static inline int64_t inlet_curl_loop_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int inlet_curl_loop_watch(
    CURL *_Nullable easy, curl_socket_t socket, int what, void *_Nullable context, void *_Nullable known) {
    (void)easy;
    inlet_curl_loop *loop = (inlet_curl_loop *)context;
    struct epoll_event event = {.events = 0, .data.fd = socket};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop->events, EPOLL_CTL_DEL, socket, &event);
        return 0;
    }
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (!known) curl_multi_assign(loop->multi, socket, loop);
    return epoll_ctl(loop->events, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
}

static inline int inlet_curl_loop_set_alarm(CURLM *_Nonnull multi, long after, void *_Nullable context) {
    (void)multi;
    ((inlet_curl_loop *)context)->due = after < 0 ? -1 : inlet_curl_loop_now() + after;
    return 0;
}

/* False when the process has no descriptor left. `loop` must stay where it is. */
static inline bool inlet_curl_loop_begin(inlet_curl_loop *_Nonnull loop, CURLM *_Nonnull multi) {
    *loop = (inlet_curl_loop){multi, epoll_create1(EPOLL_CLOEXEC), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), -1};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = loop->wake};
    if (loop->events < 0 || loop->wake < 0 || epoll_ctl(loop->events, EPOLL_CTL_ADD, loop->wake, &event)) return false;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, inlet_curl_loop_watch);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, inlet_curl_loop_set_alarm);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, loop);
    return true;
}

/* After curl_multi_cleanup(3), which still calls back. */
static inline void inlet_curl_loop_end(inlet_curl_loop *_Nonnull loop) {
    if (loop->events >= 0) close(loop->events);
    if (loop->wake >= 0) close(loop->wake);
}

/* Ends the present or the next wait. From any thread. */
static inline void inlet_curl_loop_wake(const inlet_curl_loop *_Nonnull loop) {
    uint64_t one = 1;
    /* It fails only when it is raised already. */
    ssize_t written = write(loop->wake, &one, sizeof one);
    (void)written;
}

/* Waits for `most` milliseconds, for ever where that is negative, and lets libcurl act on what has happened. */
static inline void inlet_curl_loop_wait(inlet_curl_loop *_Nonnull loop, int most) {
    struct epoll_event found[64];
    uint64_t raised;
    int running;
    if (loop->due >= 0) {
        int64_t left = loop->due - inlet_curl_loop_now();
        if (left < 0) left = 0;
        if (most < 0 || left < most) most = (int)left;
    }
    int count = epoll_wait(loop->events, found, 64, most);
    for (int index = 0; index < count; index++) {
        uint32_t events = found[index].events;
        if (found[index].data.fd == loop->wake) {
            ssize_t size = read(loop->wake, &raised, sizeof raised);
            (void)size;
            continue;
        }
        int what = 0;
        if (events & (EPOLLIN | EPOLLHUP)) what |= CURL_CSELECT_IN;
        if (events & EPOLLOUT) what |= CURL_CSELECT_OUT;
        if (events & EPOLLERR) what |= CURL_CSELECT_ERR;
        curl_multi_socket_action(loop->multi, found[index].data.fd, what, &running);
    }
    if (loop->due >= 0 && loop->due <= inlet_curl_loop_now()) {
        loop->due = -1;
        curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

/* The next transfer that has ended; false when there is none. CURLMsg holds a union, which Swift reads badly. */
static inline bool inlet_curl_multi_next_ended(
    CURLM *_Nonnull multi, CURL *_Nullable *_Nonnull easy, CURLcode *_Nonnull result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        *easy = message->easy_handle;
        *result = message->data.result;
        return true;
    }
    return false;
}

/* The bytes of an address literal: 4, 16, or 0 when `text` is a name. */
static inline int inlet_parse_address(const char *_Nonnull text, unsigned char *_Nonnull sixteen) {
    if (inet_pton(AF_INET, text, sixteen) == 1) return 4;
    if (inet_pton(AF_INET6, text, sixteen) == 1) return 16;
    return 0;
}

#endif
