/* What a scenario asks of single requests: to be held, or refused; and which ones were answered. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

enum { AGENT_ROOM = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held_at, refused;
static struct connection *first_held;
static struct text lines;

/* The access key of who signed; `-` for nobody. */
static void write_agent(char agent[AGENT_ROOM], const struct connection *c) {
    static const char *const mark = "Credential=";
    char signature[256];
    header_value(c->head, "authorization", signature, sizeof signature);
    const char *from = strstr(signature, mark);
    size_t length = from ? strcspn(from += strlen(mark), "/,") : 0;
    if (length >= AGENT_ROOM) length = 0;
    if (length) memcpy(agent, from, length);
    strcpy(agent + length, length ? "" : "-");
}

void hold_at(int parts) {
    pthread_mutex_lock(&lock);
    held_at = parts;
    pthread_mutex_unlock(&lock);
}

bool is_held(struct connection *c) {
    const char *query = c->request.query, *id = strstr(query, "uploadId=");
    char name[32] = "";
    if (strncmp(c->head, "PUT ", 4) || !id || !strstr(query, "partNumber=")) return false;
    id += strlen("uploadId=");
    strncat(name, id, strcspn(id, "&") < sizeof name ? strcspn(id, "&") : 0);
    pthread_mutex_lock(&lock);
    bool is_now = held_at > 0 && store_count(name) == held_at;
    if (is_now) {
        held_at = 0;
        c->next = first_held;
        first_held = c;
    }
    pthread_mutex_unlock(&lock);
    return is_now;
}

struct connection *take_held(void) {
    pthread_mutex_lock(&lock);
    struct connection *all = first_held;
    first_held = NULL;
    held_at = 0;
    pthread_mutex_unlock(&lock);
    return all;
}

void write_held(struct text *into) {
    char agent[AGENT_ROOM];
    pthread_mutex_lock(&lock);
    for (const struct connection *c = first_held; c; c = c->next) {
        write_agent(agent, c);
        text_append(into, "%s\n", agent);
    }
    pthread_mutex_unlock(&lock);
}

void refuse_completes(int count) {
    pthread_mutex_lock(&lock);
    refused = count;
    pthread_mutex_unlock(&lock);
}

bool is_refused(void) {
    pthread_mutex_lock(&lock);
    bool is_now = refused > 0;
    refused -= is_now;
    pthread_mutex_unlock(&lock);
    return is_now;
}

void log_request(const struct connection *c, int status) {
    const struct request *r = &c->request;
    char agent[AGENT_ROOM];
    if (!strncmp(r->target, "/_/", 3)) return;
    write_agent(agent, c);
    pthread_mutex_lock(&lock);
    text_append(&lines, "%lld %d %s %s %s %s\n", (long long)c->first_ns, status, r->method, agent, r->target, r->query);
    pthread_mutex_unlock(&lock);
}

void write_log(struct text *into) {
    pthread_mutex_lock(&lock);
    text_append(into, "%s", lines.bytes ? lines.bytes : "");
    pthread_mutex_unlock(&lock);
}
