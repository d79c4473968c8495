/* What the files of s3_sink share: server.c has the threads, connection.c the bytes, answers.c what is said, store.c
 * the names, orders.c what a scenario asks of single requests, table.c the sums that are known before the run, crc.c two of
 * them. */
#ifndef INLET_BENCH_SINK_H
#define INLET_BENCH_SINK_H

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_ROOM = 16 << 10, KEPT_ROOM = 1 << 20, PIECE = 1 << 20, MD5_BYTES = 16, NAME_ROOM = 2048 };
enum { ETAG_ROOM = 2 * MD5_BYTES + 1, MOST_PARTS = 10000 };

/* Text that grows; `bytes` is freed by whoever owns it. */
struct text {
    char *bytes;
    size_t length, room;
};
void text_clear(struct text *text);
void text_append(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* crc.c */
enum { CRC32C, CRC64NVME, CRCS, NO_CRC = -1 };
uint64_t crc_more(int kind, uint64_t crc, const void *data, size_t length);
/* Of what is `second` after `first`; `length` is the second's. */
uint64_t crc_join(int kind, uint64_t first, uint64_t second, int64_t length);

/* The sums of a body. */
struct sums {
    unsigned char md5[MD5_BYTES];
    uint64_t crc[CRCS];
};

/* table.c */
/* Reads `NAME NUMBER SIZE MD5 CRC32C CRC64NVME` lines, in hex; number 0 is the whole file. - Returns: whether it could. */
bool table_read(const char *path);
/* NULL: to be computed. `name` may have folders before it. */
const struct sums *table_find(const char *name, int number, int64_t size);

struct request {
    char method[8], target[HEAD_ROOM], key[NAME_ROOM];
    const char *query; /* "" without one */
};

struct connection {
    int fd;
    SSL *tls; /* NULL: plain */
    bool is_counted;
    size_t filled; /* bytes of a head that is not complete */
    int64_t body, length; /* bytes of the body still to come; of all of it */
    bool in_body;
    struct request request;
    const struct sums *known; /* of this body, from the table; NULL: it has none */
    bool has_md5, has_crc[CRCS]; /* which sums are computed as the body comes */
    EVP_MD_CTX *sum; /* of the body so far */
    uint64_t crc[CRCS];
    char *kept; /* the body of a POST, ended by a zero */
    size_t kept_length;
    int64_t first_ns; /* CLOCK_MONOTONIC, of the request's first byte */
    int64_t answer_at; /* CLOCK_MONOTONIC ms, of an answer that is held back */
    struct connection *next; /* in the line of delayed answers, which is in the order of time, or of what is held */
    struct text answer;
    char head[HEAD_ROOM + 1];
};

/* Set before the first connection, and then only read. */
extern struct settings {
    bool has_md5, is_comparing, is_conditional, is_logging;
    int64_t delay_ms;
    char origin[64]; /* scheme://host:port */
} settings;

/* What came since the last reset. */
struct counts {
    int64_t bytes, puts, connections, handshakes, resumed;
    int64_t part_bytes; /* of parts that came whole */
    int64_t cut; /* connections that ended within a body */
    int64_t hashed; /* bytes of bodies that no table knew */
    double cpu_seconds;
};
extern struct counts counted;
/* Connections that are in the middle of a body now. */
extern int64_t sending;
int64_t add(int64_t *count, int64_t more);

/* server.c */
struct counts counts_now(void);
void counts_reset(void);
/* Sends the answer when its time has come. From here on the connection is not the caller's. */
void delay(struct connection *c);
/* Goes on with what was held. */
void release(void);

/* connection.c */
enum fate { OVER, OPEN, LENT }; /* to be ended, to be waited on, belongs to someone else */
enum fate send_answer(struct connection *c);
/* The request is over: answers, now or later. */
enum fate finish(struct connection *c);
/* Takes and answers all that is there. `scratch` has room for PIECE. */
enum fate serve(struct connection *c, char *scratch);

/* answers.c. The request line and headers are in c->head, a POST's body in c->kept. */
/* Reads the request line, and chooses the sums that are to be computed. */
void prepare(struct connection *c);
/* Writes c->answer. */
void decide(struct connection *c);
/* The value of a header of `head`, copied; "" when it is not there. */
void header_value(const char *head, const char *name, char *value, size_t room);

/* orders.c. All functions may be called from any thread. */
/* The next PUT of a part is held whose upload has so many parts; 0: none. */
void hold_at(int parts);
/* Whether this one is. From here on the connection is not the caller's. */
bool is_held(struct connection *c);
/* All that are held. `write_held` says who sent them. */
struct connection *take_held(void);
void write_held(struct text *into);
/* So many of the next uploads that are ended are refused with 412, after they were ended. */
void refuse_completes(int count);
bool is_refused(void);
/* Keeps a line of a request that is answered: NS STATUS METHOD AGENT TARGET QUERY. */
void log_request(const struct connection *c, int status);
void write_log(struct text *into);

/* store.c. All functions may be called from any thread. */
struct part {
    int64_t size; /* -1: not sent */
    struct sums sums;
    bool has_crc[CRCS];
};
struct object {
    int64_t size, first_ns; /* of its only PUT */
    int parts; /* 0: sent in one request */
    int crc; /* of the whole, where a client asked for one; else NO_CRC */
    struct sums sums; /* MD5: of the content, or of the parts' MD5s */
};
/* `is_new`: only under a key without an object. - Returns: whether it is there. */
bool store_put(const char *key, const struct object *object, bool is_new);
bool store_get(const char *key, struct object *object);
/* Writes an id that fits in 32 bytes. `count`: how many parts are announced; 0: any number. `crc`: of the whole. */
void store_begin(const char *key, int count, int crc, char *id);
/* What a client says of a part when it ends the upload. */
struct claim {
    int number;
    char etag[64]; /* without quotes */
};
/* These two return the S3 code of what is wrong, or NULL. The second makes an object of the parts that are claimed;
 * `object->crc` and its sum are what the client states of the whole, or NO_CRC. */
const char *store_part(const char *id, int number, const struct part *part);
const char *store_complete(const char *id, const char *key, const struct claim *claims, int count, struct object *object,
                           bool is_new);
/* How many parts an open upload has; -1: there is none. The second is false for a part that has not come. */
int store_count(const char *id);
bool store_get_part(const char *id, int number, struct part *part);
void store_abort(const char *id);
void store_delete(const char *key);
void store_reset(void);
/* One line an object: SIZE MD5 KEY. MD5 is the ETag's, `-` where bodies are not hashed. */
void store_list(struct text *into);
void store_totals(int64_t *objects, int64_t *bytes, int64_t *open_uploads);
/* Of the open uploads that have parts, as members of a JSON array: ["ID", "KEY"]. */
void store_list_begun(struct text *into);
/* Without quotes. Of what is not hashed it is no MD5, and does not look like one. */
void write_hex(char hex[ETAG_ROOM], const unsigned char *md5);

#endif
