/* What is said to which request: as much of S3 and of the Spiral Storage API (dialect v1) as uploads need. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sink.h"

static const char *const XML = "Content-Type: application/xml\r\n", *const JSON = "Content-Type: application/json\r\n";

struct request {
    char method[8], target[HEAD_ROOM], key[NAME_ROOM];
    const char *query; /* "" without one */
};

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
static const char *complete(char *body, bool is_xml, const char *id, const char *key, struct object *object) {
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
    const char *wrong = store_complete(id, key, claims, count, object);
    free(claims);
    return wrong;
}

/* An upload that is not open is not found; any other fault is the request's, which would fail again. */
static void refuse(struct connection *c, const char *code, bool is_xml) {
    char body[128];
    const char *const form = is_xml ? "<Error><Code>%s</Code><Message>refused</Message></Error>" : "{\"error\": \"%s\"}";
    snprintf(body, sizeof body, form, code);
    reply(c, strcmp(code, "NoSuchUpload") ? 400 : 404, is_xml ? XML : JSON, body);
}

/* With quotes. */
static void write_etag(char *into, size_t room, const struct object *object) {
    char hex[ETAG_ROOM], tail[16] = "";
    write_hex(hex, object->md5);
    if (object->parts) snprintf(tail, sizeof tail, "-%d", object->parts);
    snprintf(into, room, "\"%s%s\"", hex, tail);
}

static void tell(struct connection *c, const struct request *r) {
    struct text body = {0};
    text_append(&body, "%s", "");
    if (!strcmp(r->method, "POST")) {
        counts_reset();
        store_reset();
    }
    if (!strcmp(r->target, "/_/objects")) {
        store_list(&body);
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
        text_append(&body, "\"handshakes\": %lld, \"resumed\": %lld, \"cpu_seconds\": %.3f}",
                    (long long)counts.handshakes, (long long)counts.resumed, counts.cpu_seconds);
    }
    reply(c, 200, JSON, body.bytes);
    free(body.bytes);
}

/* An object or a part: its ETag, and the checksum that came with it said back, as if it had been compared. */
static void put(struct connection *c, const struct request *r) {
    char id[64], number[16], decoded[32], etag[64], headers[512];
    struct object object = {.size = c->length, .first_ns = c->first_ns};
    header_value(c->head, "x-amz-decoded-content-length", decoded, sizeof decoded);
    if (decoded[0]) object.size = atoll(decoded);
    if (c->has_md5) EVP_DigestFinal_ex(c->sum, object.md5, NULL);
    bool is_part = field(r, "partNumber", number, sizeof number) && field(r, "uploadId", id, sizeof id);
    if (is_part) {
        struct part part = {.size = object.size};
        memcpy(part.md5, object.md5, MD5_BYTES);
        const char *wrong = store_part(id, atoi(number), &part);
        if (wrong) return refuse(c, wrong, true);
        add(&counted.part_bytes, part.size);
    } else {
        store_put(r->key, &object);
    }
    write_etag(etag, sizeof etag, &object);
    int used = snprintf(headers, sizeof headers, "ETag: %s\r\n", etag);
    const char *const names[] = {"x-amz-checksum-crc32c", "x-amz-checksum-sha256"};
    for (size_t at = 0; at < 2; at++) {
        char value[96];
        header_value(c->head, names[at], value, sizeof value);
        if (value[0]) used += snprintf(headers + used, sizeof headers - (size_t)used, "%s: %s\r\n", names[at], value);
    }
    reply(c, 200, headers, "");
}

/* POST of S3: begins or ends an upload. */
static void post(struct connection *c, const struct request *r) {
    char id[64] = "", etag[64], body[3 * NAME_ROOM];
    struct object object;
    if (field(r, "uploads", id, sizeof id)) {
        store_begin(r->key, 0, id);
        snprintf(body, sizeof body, "<InitiateMultipartUploadResult><Bucket>bench</Bucket><Key>%s</Key>"
                 "<UploadId>%s</UploadId></InitiateMultipartUploadResult>", r->key, id);
    } else {
        field(r, "uploadId", id, sizeof id);
        const char *wrong = complete(c->kept, true, id, r->key, &object);
        if (wrong) return refuse(c, wrong, true);
        write_etag(etag, sizeof etag, &object);
        snprintf(body, sizeof body, "<CompleteMultipartUploadResult><Location>%s%s</Location><Bucket>bench</Bucket>"
                 "<Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>", settings.origin, r->key, r->key, etag);
    }
    reply(c, 200, XML, body);
}

/* The Spiral Storage API: what it signs is this server's own address. */
static void spiral(struct connection *c, const struct request *r) {
    char name[NAME_ROOM], key[NAME_ROOM + 16], id[64], count[16];
    struct text body = {0};
    struct object object;
    const char *call = r->target + strlen("/v1/"), *wrong = NULL;
    header_value(c->head, "x-api-key", name, sizeof name);
    if (strcmp(name, "bench")) return reply(c, 401, JSON, "{\"error\": \"unknown API key\"}");
    json_field(c->kept, "key", name, sizeof name);
    json_field(c->kept, "upload_id", id, sizeof id);
    if (!strncmp(call, "objects/url/", 12)) snprintf(name, sizeof name, "%s", r->key + strlen("/v1/objects/url/"));
    snprintf(key, sizeof key, "/object/%s", name);
    if (!strcmp(call, "multipart/create")) {
        json_field(c->kept, "parts", count, sizeof count);
        store_begin(key, atoi(count), id);
        text_append(&body, "{\"upload_id\": \"%s\", \"part_urls\": [", id);
        for (int part = 1; part <= atoi(count); part++)
            text_append(&body, "%s{\"part_number\": %d, \"url\": \"%s%s?partNumber=%d&uploadId=%s\"}", part > 1 ? ", " : "",
                        part, settings.origin, key, part, id);
        text_append(&body, "]}");
    } else if (!strcmp(call, "multipart/abort")) {
        store_abort(id);
        text_append(&body, "{}");
    } else if (!strcmp(call, "multipart/complete") && (wrong = complete(c->kept, false, id, key, &object))) {
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
    if (!strcmp(r->method, "HEAD")) {
        snprintf(headers + used, sizeof headers - (size_t)used, "Content-Length: %lld\r\n", (long long)object.size);
        return reply(c, 200, headers, "");
    }
    snprintf(headers + used, sizeof headers - (size_t)used, "Content-Range: bytes 0-0/%lld\r\n", (long long)object.size);
    reply(c, 206, headers, "0");
}

void decide(struct connection *c) {
    struct request r = {.query = ""};
    text_clear(&c->answer);
    sscanf(c->head, "%7s %16000s", r.method, r.target);
    char *mark = strchr(r.target, '?');
    if (mark) {
        *mark = 0;
        r.query = mark + 1;
    }
    unescape(r.target, strlen(r.target), r.key, sizeof r.key);
    char encoding[32], id[64];
    header_value(c->head, "transfer-encoding", encoding, sizeof encoding);
    if (encoding[0]) return reply(c, 411, "Connection: close\r\n", "a length is needed");
    if (!strncmp(r.target, "/_/", 3)) return tell(c, &r);
    if (!strncmp(r.target, "/v1/", 4)) return spiral(c, &r);
    if (!strcmp(r.method, "PUT")) return put(c, &r);
    if (!strcmp(r.method, "POST")) return post(c, &r);
    if (!strcmp(r.method, "DELETE")) {
        if (field(&r, "uploadId", id, sizeof id)) store_abort(id);
        return reply(c, 204, "", "");
    }
    if (field(&r, "uploadId", id, sizeof id))
        return reply(c, 200, XML, "<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>");
    look(c, &r);
}
