/* The names and sizes of what was thrown away, and the uploads that are open. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

enum { BUCKETS = 1 << 16, LEAST_PART = 5 << 20 };

struct entry {
    struct entry *next;
    struct object object;
    char key[];
};

struct upload {
    struct upload *next;
    char id[32];
    int count; /* as announced; 0: not */
    int crc, room;
    struct part *parts; /* index 0 is part 1 */
    char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries[BUCKETS];
static struct upload *uploads;
static int64_t objects, object_bytes, next_id;

void text_clear(struct text *text) { text->length = 0; }

void text_append(struct text *text, const char *format, ...) {
    for (;;) {
        size_t left = text->room - text->length;
        va_list arguments;
        va_start(arguments, format);
        int needed = vsnprintf(text->bytes ? text->bytes + text->length : NULL, left, format, arguments);
        va_end(arguments);
        if (needed < 0) abort();
        if ((size_t)needed < left) {
            text->length += (size_t)needed;
            return;
        }
        text->room = (text->room + (size_t)needed + 1) * 2;
        text->bytes = realloc(text->bytes, text->room);
        if (!text->bytes) abort();
    }
}

/* FNV-1a */
static struct entry **bucket(const char *key) {
    uint64_t hash = 14695981039346656037u;
    for (const char *at = key; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return &entries[(hash ^ hash >> 32) % BUCKETS];
}

static void put_locked(const char *key, const struct object *object) {
    struct entry **first = bucket(key), *entry = *first;
    while (entry && strcmp(entry->key, key)) entry = entry->next;
    if (!entry) {
        entry = malloc(sizeof *entry + strlen(key) + 1);
        if (!entry) abort();
        strcpy(entry->key, key);
        entry->next = *first;
        entry->object.size = 0;
        *first = entry;
        objects++;
    }
    object_bytes += object->size - entry->object.size;
    entry->object = *object;
}

static struct entry *entry_of(const char *key) {
    struct entry *entry = *bucket(key);
    while (entry && strcmp(entry->key, key)) entry = entry->next;
    return entry;
}

bool store_put(const char *key, const struct object *object, bool is_new) {
    pthread_mutex_lock(&lock);
    bool is_free = !is_new || !entry_of(key);
    if (is_free) put_locked(key, object);
    pthread_mutex_unlock(&lock);
    return is_free;
}

bool store_get(const char *key, struct object *object) {
    pthread_mutex_lock(&lock);
    struct entry *entry = entry_of(key);
    if (entry) *object = entry->object;
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

void store_begin(const char *key, int count, int crc, char *id) {
    struct upload *upload = calloc(1, sizeof *upload + strlen(key) + 1);
    if (!upload) abort();
    strcpy(upload->key, key);
    upload->count = count;
    upload->crc = crc;
    pthread_mutex_lock(&lock);
    snprintf(upload->id, sizeof upload->id, "upload-%lld", (long long)++next_id);
    strcpy(id, upload->id);
    upload->next = uploads;
    uploads = upload;
    pthread_mutex_unlock(&lock);
}

/* The link to the upload; to NULL when there is none. */
static struct upload **find(const char *id) {
    struct upload **link = &uploads;
    while (*link && strcmp((*link)->id, id)) link = &(*link)->next;
    return link;
}

static void drop(struct upload **link) {
    struct upload *upload = *link;
    *link = upload->next;
    free(upload->parts);
    free(upload);
}

const char *store_part(const char *id, int number, const struct part *part) {
    pthread_mutex_lock(&lock);
    struct upload *upload = *find(id);
    int most = upload && upload->count ? upload->count : MOST_PARTS;
    const char *wrong = !upload ? "NoSuchUpload" : number < 1 || number > most ? "InvalidPart" : NULL;
    if (!wrong && number > upload->room) {
        int room = number * 2;
        upload->parts = realloc(upload->parts, (size_t)room * sizeof *upload->parts);
        if (!upload->parts) abort();
        for (int at = upload->room; at < room; at++) upload->parts[at].size = -1;
        upload->room = room;
    }
    if (!wrong) upload->parts[number - 1] = *part;
    pthread_mutex_unlock(&lock);
    return wrong;
}

int store_count(const char *id) {
    pthread_mutex_lock(&lock);
    struct upload *upload = *find(id);
    int count = upload ? 0 : -1;
    for (int at = 0; upload && at < upload->room; at++) count += upload->parts[at].size >= 0;
    pthread_mutex_unlock(&lock);
    return count;
}

bool store_get_part(const char *id, int number, struct part *part) {
    pthread_mutex_lock(&lock);
    struct upload *upload = *find(id);
    bool is_there = upload && number <= upload->room && upload->parts[number - 1].size >= 0;
    if (is_there) *part = upload->parts[number - 1];
    pthread_mutex_unlock(&lock);
    return is_there;
}

void write_hex(char hex[ETAG_ROOM], const unsigned char *md5) {
    strcpy(hex, "discarded");
    for (int at = 0; settings.has_md5 && at < MD5_BYTES; at++) snprintf(hex + 2 * at, 3, "%02x", md5[at]);
}

/* By R2's rules: parts 1..N in this order, all but the last of one size and of at least 5 MiB. */
static const char *wrong_part(const struct upload *upload, const struct claim *claims, int at) {
    const struct part *parts = upload->parts;
    char hex[ETAG_ROOM];
    if (claims[at].number != at + 1) return "InvalidPartOrder";
    if (at >= upload->room || parts[at].size < 0) return "InvalidPart";
    write_hex(hex, parts[at].sums.md5);
    if (strcmp(claims[at].etag, hex)) return "InvalidPart";
    bool is_small = at > 0 && (parts[0].size < LEAST_PART || parts[at - 1].size != parts[0].size);
    return is_small ? "EntityTooSmall" : NULL;
}

/* The whole's CRC from its parts', which must all have one; nothing is wrong where none is asked for. */
static const char *join(const struct upload *upload, int count, struct object *object) {
    int kind = upload->crc;
    struct object stated = *object;
    object->crc = kind;
    if (kind == NO_CRC) return NULL;
    object->sums.crc[kind] = 0;
    for (int at = 0; at < count; at++) {
        const struct part *part = &upload->parts[at];
        if (!part->has_crc[kind]) return "InvalidRequest";
        object->sums.crc[kind] = crc_join(kind, object->sums.crc[kind], part->sums.crc[kind], part->size);
    }
    return stated.crc == kind && stated.sums.crc[kind] != object->sums.crc[kind] ? "BadDigest" : NULL;
}

static const char *compose(const struct upload *upload, const struct claim *claims, int count, struct object *object) {
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    EVP_DigestInit_ex(sum, EVP_md5(), NULL);
    const char *wrong = count == 0 || (upload->count && count != upload->count) ? "InvalidPart" : NULL;
    object->size = 0;
    object->parts = count;
    for (int at = 0; !wrong && at < count; at++) {
        if ((wrong = wrong_part(upload, claims, at))) break;
        object->size += upload->parts[at].size;
        EVP_DigestUpdate(sum, upload->parts[at].sums.md5, MD5_BYTES);
    }
    EVP_DigestFinal_ex(sum, object->sums.md5, NULL);
    EVP_MD_CTX_free(sum);
    return wrong ? wrong : join(upload, count, object);
}

const char *store_complete(const char *id, const char *key, const struct claim *claims, int count, struct object *object,
                           bool is_new) {
    pthread_mutex_lock(&lock);
    struct upload **link = find(id);
    const char *wrong = !*link || strcmp((*link)->key, key) ? "NoSuchUpload"
                        : is_new && entry_of(key) ? "PreconditionFailed" : compose(*link, claims, count, object);
    if (!wrong) {
        put_locked(key, object);
        drop(link);
    }
    pthread_mutex_unlock(&lock);
    return wrong;
}

void store_abort(const char *id) {
    pthread_mutex_lock(&lock);
    struct upload **link = find(id);
    if (*link) drop(link);
    pthread_mutex_unlock(&lock);
}

void store_delete(const char *key) {
    pthread_mutex_lock(&lock);
    struct entry **link = bucket(key);
    while (*link && strcmp((*link)->key, key)) link = &(*link)->next;
    struct entry *entry = *link;
    if (entry) {
        *link = entry->next;
        objects--;
        object_bytes -= entry->object.size;
        free(entry);
    }
    pthread_mutex_unlock(&lock);
}

void store_reset(void) {
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BUCKETS; at++) {
        while (entries[at]) {
            struct entry *entry = entries[at];
            entries[at] = entry->next;
            free(entry);
        }
    }
    while (uploads) drop(&uploads);
    objects = object_bytes = 0;
    pthread_mutex_unlock(&lock);
}

void store_list(struct text *into) {
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BUCKETS; at++) {
        for (struct entry *entry = entries[at]; entry; entry = entry->next) {
            text_append(into, "%lld ", (long long)entry->object.size);
            for (int byte = 0; settings.has_md5 && byte < MD5_BYTES; byte++)
                text_append(into, "%02x", entry->object.sums.md5[byte]);
            if (settings.has_md5 && entry->object.parts) text_append(into, "-%d", entry->object.parts);
            text_append(into, "%s %s\n", settings.has_md5 ? "" : "-", entry->key);
        }
    }
    pthread_mutex_unlock(&lock);
}

void store_list_begun(struct text *into) {
    const char *between = "";
    pthread_mutex_lock(&lock);
    for (struct upload *upload = uploads; upload; upload = upload->next) {
        if (upload->room == 0) continue;
        text_append(into, "%s[\"%s\", \"", between, upload->id);
        for (const char *at = upload->key; *at; at++) text_append(into, strchr("\"\\", *at) ? "\\%c" : "%c", *at);
        text_append(into, "\"]");
        between = ", ";
    }
    pthread_mutex_unlock(&lock);
}

void store_totals(int64_t *count, int64_t *bytes, int64_t *open) {
    pthread_mutex_lock(&lock);
    *count = objects;
    *bytes = object_bytes;
    *open = 0;
    for (struct upload *upload = uploads; upload; upload = upload->next) *open += 1;
    pthread_mutex_unlock(&lock);
}
