#ifndef INLET_CCURL_SHIM_H
#define INLET_CCURL_SHIM_H

#include <arpa/inet.h>
#include <curl/curl.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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
