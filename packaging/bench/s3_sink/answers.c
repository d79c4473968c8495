/* What is said to which request: as much of S3 and of the Spiral Storage API (dialect v1) as uploads need. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sink.h"

static const char *const XML = "Content-Type: application/xml\r\n", *const JSON = "Content-Type: application/json\r\n";

static const char *const CRC_NAMES[CRCS] = {"CRC32C", "CRC64NVME"};
static const int CRC_BYTES[CRCS] = {4, 8};
enum { BASE64_ROOM = 32, MOST_LISTED = 1000 };

void header_value(const char *head, const char *name, char *value, size_t room) {
    size_t length = strlen(name);
    value[0] = 0;
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) || line[length] != ':') continue;
        const char *from = line + length + 1 + strspn(line + length + 1, " ");
        snprintf(value, room, "%.*s", (int)strcspn(from, "\r\n"), from);
        return;
    }
}

static void reply(struct connection *c, int status, const char *headers, const char *body) {
    if (settings.is_logging) log_request(c, status);
    bool is_head = !strncmp(c->head, "HEAD ", 5);
    text_append(&c->answer, "HTTP/1.1 %d %s\r\n", status, status < 300 ? "OK" : "No");
    /* A head with a length of its own describes an object. */
    if (!strcasestr(headers, "Content-Length:")) text_append(&c->answer, "Content-Length: %zu\r\n", strlen(body));
    text_append(&c->answer, "%s\r\n%s", headers, is_head ? "" : body);
}

static void unescape(const char *from, size_t length, char *into, size_t room) {
    size_t used = 0;
    for (size_t at = 0; at < length && used + 1 < room; at++) {
        char pair[3] = {0};
        if (from[at] == '%' && at + 2 < length && isxdigit(from[at + 1]) && isxdigit(from[at + 2])) {
            memcpy(pair, from + at + 1, 2);
            into[used++] = (char)strtol(pair, NULL, 16);
            at += 2;
        } else {
            into[used++] = from[at];
        }
    }
    into[used] = 0;
}

/* A field of the query; false when it is not there. */
static bool field(const struct request *r, const char *name, char *value, size_t room) {
    size_t length = strlen(name);
    for (const char *at = r->query; *at; at += strcspn(at, "&"), at += *at == '&') {
        size_t end = strcspn(at, "&");
        if (strncmp(at, name, length) || (at[length] != '=' && length != end)) continue;
        bool has_value = at[length] == '=';
        unescape(at + length + has_value, end - length - has_value, value, room);
        return true;
    }
    return false;
}

/* The text or the number of a field of a flat JSON object; "" when it is not there. */
static void json_field(const char *json, const char *name, char *value, size_t room) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = json ? strstr(json, quoted) : NULL;
    size_t used = 0;
    value[0] = 0;
    if (!at) return;
    at += strlen(quoted) + strspn(at + strlen(quoted), " :\n");
    bool is_text = *at == '"';
    for (at += is_text; *at && (is_text ? *at != '"' : isdigit(*at) != 0) && used + 1 < room; at++) {
        if (*at == '\\' && at[1]) at++;
        value[used++] = *at;
    }
    value[used] = 0;
}

/* The text of an element without children; "" when it is not there. */
static void xml_field(const char *xml, const char *name, char *value, size_t room) {
    char tag[64];
    snprintf(tag, sizeof tag, "<%s>", name);
    const char *at = strstr(xml, tag);
    const char *from = at ? at + strlen(tag) : "";
    snprintf(value, room, "%.*s", (int)strcspn(from, "<"), from);
}

static void remove_quotes(char *etag) {
    const char *const ways[] = {"&quot;", "&#34;", "\""};
    for (size_t way = 0; way < 3; way++) {
        size_t length = strlen(ways[way]);
        for (char *at; (at = strstr(etag, ways[way]));) memmove(at, at + length, strlen(at + length) + 1);
    }
}

/* Ends an upload with the parts that the body names, one `<Part>` each or one object each of the array `parts`; cuts the body
 * up. - Returns: what is wrong, as store_complete does. */
static const char *complete(char *body, bool is_xml, const char *id, const char *key, struct object *object, bool is_new) {
    const char *open = is_xml ? "<Part>" : "{", *close = is_xml ? "</Part>" : "}";
    char *at = !body || is_xml ? body : strstr(body, "\"parts\""), *end = at && !is_xml ? strchr(at, ']') : NULL;
    /* One more than may be, so that too many are seen. */
    struct claim *claims = calloc(MOST_PARTS + 1, sizeof *claims);
    int count = 0;
    if (!claims) abort();
    if (end) *end = 0;
    while (at && count <= MOST_PARTS && (at = strstr(at, open)) && (end = strstr(at, close))) {
        char number[16];
        struct claim *claim = &claims[count++];
        *end = 0;
        (is_xml ? xml_field : json_field)(at, is_xml ? "PartNumber" : "part_number", number, sizeof number);
        (is_xml ? xml_field : json_field)(at, is_xml ? "ETag" : "etag", claim->etag, sizeof claim->etag);
        claim->number = atoi(number);
        remove_quotes(claim->etag);
        at = end + 1;
    }
    const char *wrong = store_complete(id, key, claims, count, object, is_new);
    free(claims);
    return wrong;
}

/* An upload that is not open is not found; any other fault is the request's, which would fail again. */
static void refuse(struct connection *c, const char *code, bool is_xml) {
    char body[128];
    const char *const form = is_xml ? "<Error><Code>%s</Code><Message>refused</Message></Error>" : "{\"error\": \"%s\"}";
    snprintf(body, sizeof body, form, code);
    int status = !strcmp(code, "NoSuchUpload") ? 404 : !strcmp(code, "PreconditionFailed") ? 412 : 400;
    reply(c, status, is_xml ? XML : JSON, body);
}

/* Base64 of the sum, with its first byte first. */
static void write_crc(char into[BASE64_ROOM], int kind, uint64_t crc) {
    unsigned char bytes[8];
    for (int at = 0; at < CRC_BYTES[kind]; at++) bytes[at] = (unsigned char)(crc >> 8 * (CRC_BYTES[kind] - 1 - at));
    EVP_EncodeBlock((unsigned char *)into, bytes, CRC_BYTES[kind]);
}

/* What the client states in a header; false when it does not. */
static bool stated_crc(const struct connection *c, int kind, char value[BASE64_ROOM]) {
    char name[40];
    snprintf(name, sizeof name, "x-amz-checksum-%s", CRC_NAMES[kind]);
    header_value(c->head, name, value, BASE64_ROOM);
    return value[0] != 0;
}

/* Its number; 0 for one that is none. */
static uint64_t read_crc(int kind, const char *text) {
    unsigned char bytes[BASE64_ROOM];
    size_t length = strlen(text);
    uint64_t crc = 0;
    if (length != (size_t)(CRC_BYTES[kind] + 2) / 3 * 4) return 0;
    if (EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length) < 0) return 0;
    for (int at = 0; at < CRC_BYTES[kind]; at++) crc = crc << 8 | bytes[at];
    return crc;
}

/* With quotes. */
static void write_etag(char *into, size_t room, const struct object *object) {
    char hex[ETAG_ROOM], tail[16] = "";
    write_hex(hex, object->sums.md5);
    if (object->parts) snprintf(tail, sizeof tail, "-%d", object->parts);
    snprintf(into, room, "\"%s%s\"", hex, tail);
}

static void tell(struct connection *c, const struct request *r) {
    struct text body = {0};
    char count[16] = "0";
    text_append(&body, "%s", "");
    if (!strcmp(r->method, "POST") && strcmp(r->target, "/_/reset")) {
        field(r, "count", count, sizeof count);
        if (!strcmp(r->target, "/_/hold")) hold_at(atoi(count));
        else if (!strcmp(r->target, "/_/refuse")) refuse_completes(atoi(count));
        else release();
        return reply(c, 200, JSON, "{}");
    }
    if (!strcmp(r->method, "POST")) {
        counts_reset();
        store_reset();
    }
    if (!strcmp(r->target, "/_/objects")) {
        store_list(&body);
    } else if (!strcmp(r->target, "/_/requests")) {
        write_log(&body);
    } else if (!strcmp(r->target, "/_/held")) {
        write_held(&body);
    } else if (!strcmp(r->target, "/_/first")) {
        char key[NAME_ROOM] = "";
        struct object object = {0};
        if (field(r, "key", key, sizeof key)) store_get(key, &object);
        text_append(&body, "{\"ns\": %lld}", (long long)object.first_ns);
    } else {
        int64_t objects, bytes, uploads;
        struct counts counts = counts_now();
        store_totals(&objects, &bytes, &uploads);
        text_append(&body, "{\"objects\": %lld, \"object_bytes\": %lld, \"open_uploads\": %lld, ", (long long)objects,
                    (long long)bytes, (long long)uploads);
        text_append(&body, "\"begun_uploads\": [");
        store_list_begun(&body);
        text_append(&body, "], \"part_bytes\": %lld, ", (long long)counts.part_bytes);
        text_append(&body, "\"bytes\": %lld, \"puts\": %lld, \"connections\": %lld, ", (long long)counts.bytes,
                    (long long)counts.puts, (long long)counts.connections);
        text_append(&body, "\"sending\": %lld, \"cut\": %lld, ", (long long)sending, (long long)counts.cut);
        text_append(&body, "\"hashed\": %lld, ", (long long)counts.hashed);
        text_append(&body, "\"handshakes\": %lld, \"resumed\": %lld, \"cpu_seconds\": %.3f}",
                    (long long)counts.handshakes, (long long)counts.resumed, counts.cpu_seconds);
    }
    reply(c, 200, JSON, body.bytes);
    free(body.bytes);
}

/* The sums of the body that came; false when the client stated another one, where they are compared. */
static bool settle_sums(struct connection *c, struct sums *sums) {
    unsigned char ours[BASE64_ROOM];
    char stated[BASE64_ROOM];
    if (c->known) *sums = *c->known;
    if (c->has_md5) EVP_DigestFinal_ex(c->sum, sums->md5, NULL);
    for (int kind = 0; kind < CRCS; kind++) {
        if (c->has_crc[kind]) sums->crc[kind] = c->crc[kind];
        if (!settings.is_comparing || !stated_crc(c, kind, stated)) continue;
        write_crc((char *)ours, kind, sums->crc[kind]);
        if (strcmp(stated, (char *)ours)) return false;
    }
    header_value(c->head, "content-md5", stated, sizeof stated);
    EVP_EncodeBlock(ours, sums->md5, MD5_BYTES);
    return !stated[0] || !(c->known || c->has_md5) || !strcmp(stated, (char *)ours);
}

/* The checksums that came with a body, said back in `headers` and kept with it. */
static void confirm(struct connection *c, struct part *part, struct object *object, char *headers, size_t room) {
    size_t used = strlen(headers);
    for (int kind = 0; kind < CRCS; kind++) {
        char stated[BASE64_ROOM];
        if (!stated_crc(c, kind, stated)) continue;
        object->crc = kind;
        part->has_crc[kind] = true;
        object->sums.crc[kind] = read_crc(kind, stated);
        used += (size_t)snprintf(headers + used, room - used, "x-amz-checksum-%s: %s\r\n", CRC_NAMES[kind], stated);
    }
    char sha256[64];
    header_value(c->head, "x-amz-checksum-sha256", sha256, sizeof sha256);
    if (sha256[0]) snprintf(headers + used, room - used, "x-amz-checksum-sha256: %s\r\n", sha256);
}

/* Whether the key must have no object yet. */
static bool is_only_new(const struct connection *c) {
    char condition[8];
    header_value(c->head, "if-none-match", condition, sizeof condition);
    return settings.is_conditional && !strcmp(condition, "*");
}

/* An object or a part. */
static void put(struct connection *c, const struct request *r) {
    char id[64], number[16], decoded[32], etag[64], headers[512];
    struct object object = {.size = c->length, .first_ns = c->first_ns, .crc = NO_CRC};
    struct part part = {0};
    header_value(c->head, "x-amz-decoded-content-length", decoded, sizeof decoded);
    if (decoded[0]) object.size = atoll(decoded);
    if (!settle_sums(c, &object.sums)) return refuse(c, "BadDigest", true);
    write_etag(etag, sizeof etag, &object);
    snprintf(headers, sizeof headers, "ETag: %s\r\n", etag);
    confirm(c, &part, &object, headers, sizeof headers);
    if (field(r, "partNumber", number, sizeof number) && field(r, "uploadId", id, sizeof id)) {
        part.size = object.size;
        part.sums = object.sums;
        const char *wrong = store_part(id, atoi(number), &part);
        if (wrong) return refuse(c, wrong, true);
        add(&counted.part_bytes, part.size);
    } else if (!store_put(r->key, &object, is_only_new(c))) {
        return refuse(c, "PreconditionFailed", true);
    }
    reply(c, 200, headers, "");
}

/* Which CRC of the whole an upload begins with. */
static int asked_crc(const struct connection *c) {
    char type[32], name[32];
    header_value(c->head, "x-amz-checksum-type", type, sizeof type);
    header_value(c->head, "x-amz-checksum-algorithm", name, sizeof name);
    for (int kind = 0; kind < CRCS && !strcmp(type, "FULL_OBJECT"); kind++)
        if (!strcasecmp(name, CRC_NAMES[kind])) return kind;
    return NO_CRC;
}

/* POST of S3: begins or ends an upload. */
static void post(struct connection *c, const struct request *r) {
    char id[64] = "", etag[64], crc[BASE64_ROOM], sum[128] = "", body[4 * NAME_ROOM];
    if (field(r, "uploads", id, sizeof id)) {
        store_begin(r->key, 0, asked_crc(c), id);
        snprintf(body, sizeof body, "<InitiateMultipartUploadResult><Bucket>bench</Bucket><Key>%s</Key>"
                 "<UploadId>%s</UploadId></InitiateMultipartUploadResult>", r->key, id);
    } else {
        struct object object = {.crc = NO_CRC};
        field(r, "uploadId", id, sizeof id);
        for (int kind = 0; kind < CRCS; kind++) {
            if (!stated_crc(c, kind, crc)) continue;
            object.crc = kind;
            object.sums.crc[kind] = read_crc(kind, crc);
        }
        const char *wrong = complete(c->kept, true, id, r->key, &object, is_only_new(c));
        if (!wrong && is_refused()) wrong = "PreconditionFailed";
        if (wrong) return refuse(c, wrong, true);
        write_etag(etag, sizeof etag, &object);
        if (object.crc != NO_CRC) {
            write_crc(crc, object.crc, object.sums.crc[object.crc]);
            snprintf(sum, sizeof sum, "<Checksum%s>%s</Checksum%s><ChecksumType>FULL_OBJECT</ChecksumType>",
                     CRC_NAMES[object.crc], crc, CRC_NAMES[object.crc]);
        }
        snprintf(body, sizeof body, "<CompleteMultipartUploadResult><Location>%s%s</Location><Bucket>bench</Bucket>"
                 "<Key>%s</Key><ETag>%s</ETag>%s</CompleteMultipartUploadResult>", settings.origin, r->key, r->key, etag, sum);
    }
    reply(c, 200, XML, body);
}

/* The Spiral Storage API: what it signs is this server's own address. */
static void spiral(struct connection *c, const struct request *r) {
    char name[NAME_ROOM], key[NAME_ROOM + 16], id[64], count[16];
    struct text body = {0};
    struct object object = {.crc = NO_CRC};
    const char *call = r->target + strlen("/v1/"), *wrong = NULL;
    header_value(c->head, "x-api-key", name, sizeof name);
    if (strcmp(name, "bench")) return reply(c, 401, JSON, "{\"error\": \"unknown API key\"}");
    json_field(c->kept, "key", name, sizeof name);
    json_field(c->kept, "upload_id", id, sizeof id);
    if (!strncmp(call, "objects/url/", 12)) snprintf(name, sizeof name, "%s", r->key + strlen("/v1/objects/url/"));
    snprintf(key, sizeof key, "/object/%s", name);
    if (!strcmp(call, "multipart/create")) {
        json_field(c->kept, "parts", count, sizeof count);
        store_begin(key, atoi(count), NO_CRC, id);
        text_append(&body, "{\"upload_id\": \"%s\", \"part_urls\": [", id);
        for (int part = 1; part <= atoi(count); part++)
            text_append(&body, "%s{\"part_number\": %d, \"url\": \"%s%s?partNumber=%d&uploadId=%s\"}", part > 1 ? ", " : "",
                        part, settings.origin, key, part, id);
        text_append(&body, "]}");
    } else if (!strcmp(call, "multipart/abort")) {
        store_abort(id);
        text_append(&body, "{}");
    } else if (!strcmp(call, "multipart/complete") && (wrong = complete(c->kept, false, id, key, &object, false))) {
        return refuse(c, wrong, false);
    } else if (!strcmp(call, "presign/upload") || !strcmp(call, "multipart/complete")
               || (!strncmp(call, "objects/url/", 12) && store_get(key, &object))) {
        text_append(&body, "{\"url\": \"%s%s\", \"key\": \"%s\"}", settings.origin, key, key + strlen("/object/"));
    } else {
        return reply(c, 404, JSON, "{\"error\": \"not found\"}");
    }
    reply(c, 200, JSON, body.bytes);
    free(body.bytes);
}

/* HEAD and GET. What was thrown away has a size, and of its bytes only the first can be read, as a zero. */
static void look(struct connection *c, const struct request *r) {
    char headers[512], etag[64];
    struct object object;
    const char *rest = strchr(r->key + 1, '/');
    if (!rest || !rest[1])
        return reply(c, 200, XML, "<ListBucketResult><Name>bench</Name><KeyCount>0</KeyCount>"
                     "<IsTruncated>false</IsTruncated></ListBucketResult>");
    if (!store_get(r->key, &object))
        return reply(c, 404, XML, "<Error><Code>NoSuchKey</Code><Message>discarded</Message></Error>");
    write_etag(etag, sizeof etag, &object);
    int used = snprintf(headers, sizeof headers, "ETag: %s\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", etag);
    if (object.crc != NO_CRC) {
        char crc[BASE64_ROOM];
        write_crc(crc, object.crc, object.sums.crc[object.crc]);
        used += snprintf(headers + used, sizeof headers - (size_t)used, "x-amz-checksum-%s: %s\r\n",
                         CRC_NAMES[object.crc], crc);
    }
    if (!strcmp(r->method, "HEAD")) {
        snprintf(headers + used, sizeof headers - (size_t)used, "Content-Length: %lld\r\n", (long long)object.size);
        return reply(c, 200, headers, "");
    }
    snprintf(headers + used, sizeof headers - (size_t)used, "Content-Range: bytes 0-0/%lld\r\n", (long long)object.size);
    reply(c, 206, headers, "0");
}

/* ListParts: one page. */
static void list_parts(struct connection *c, const struct request *r, const char *id) {
    char marker[16] = "0", hex[ETAG_ROOM], crc[BASE64_ROOM];
    struct text body = {0};
    struct part part;
    int count = store_count(id), listed = 0, number;
    if (count < 0) return refuse(c, "NoSuchUpload", true);
    field(r, "part-number-marker", marker, sizeof marker);
    text_append(&body, "<ListPartsResult>");
    for (number = atoi(marker) + 1; number <= MOST_PARTS && listed < count && listed < MOST_LISTED; number++) {
        if (!store_get_part(id, number, &part)) continue;
        listed++;
        write_hex(hex, part.sums.md5);
        text_append(&body, "<Part><PartNumber>%d</PartNumber><Size>%lld</Size><ETag>&quot;%s&quot;</ETag>", number,
                    (long long)part.size, hex);
        for (int kind = 0; kind < CRCS; kind++) {
            if (!part.has_crc[kind]) continue;
            write_crc(crc, kind, part.sums.crc[kind]);
            text_append(&body, "<Checksum%s>%s</Checksum%s>", CRC_NAMES[kind], crc, CRC_NAMES[kind]);
        }
        text_append(&body, "</Part>");
    }
    text_append(&body, "<IsTruncated>%s</IsTruncated></ListPartsResult>", listed == MOST_LISTED ? "true" : "false");
    reply(c, 200, XML, body.bytes);
    free(body.bytes);
}

void prepare(struct connection *c) {
    struct request *r = &c->request;
    char number[16] = "", stated[BASE64_ROOM];
    r->query = "";
    sscanf(c->head, "%7s %16000s", r->method, r->target);
    char *mark = strchr(r->target, '?');
    if (mark) {
        *mark = 0;
        r->query = mark + 1;
    }
    unescape(r->target, strlen(r->target), r->key, sizeof r->key);
    bool is_body = !strcmp(r->method, "PUT");
    if (is_body) field(r, "partNumber", number, sizeof number);
    c->known = is_body ? table_find(r->key, atoi(number), c->length) : NULL;
    c->has_md5 = is_body && settings.has_md5 && !c->known;
    for (int kind = 0; kind < CRCS; kind++) {
        c->crc[kind] = 0;
        c->has_crc[kind] = is_body && settings.is_comparing && !c->known && stated_crc(c, kind, stated);
    }
}

void decide(struct connection *c) {
    const struct request *r = &c->request;
    char encoding[32], id[64];
    text_clear(&c->answer);
    header_value(c->head, "transfer-encoding", encoding, sizeof encoding);
    if (encoding[0]) return reply(c, 411, "Connection: close\r\n", "a length is needed");
    if (!strncmp(r->target, "/_/", 3)) return tell(c, r);
    if (!strncmp(r->target, "/v1/", 4)) return spiral(c, r);
    if (!strcmp(r->method, "PUT")) return put(c, r);
    if (!strcmp(r->method, "POST")) return post(c, r);
    if (!strcmp(r->method, "DELETE")) {
        if (field(r, "uploadId", id, sizeof id)) store_abort(id);
        else store_delete(r->key);
        return reply(c, 204, "", "");
    }
    if (field(r, "uploadId", id, sizeof id)) return list_parts(c, r, id);
    look(c, r);
}
