/* libpq, PostgreSQL's client library, opened at run time (dlopen(3)): an agent without a fleet has nothing of it. */
#ifndef INLET_CPOSTGRES_H
#define INLET_CPOSTGRES_H

#include <dlfcn.h>
#include <postgresql/libpq-fe.h>

/* What Inlet calls of it: a member each, of the function's own type. */
#define INLET_PQ_FUNCTIONS(of)                                                                                         \
    of(PQclear) of(PQconndefaults) of(PQconnectPoll) of(PQconnectStartParams) of(PQconninfoFree)       \
    of(PQconninfoParse) of(PQconsumeInput) of(PQerrorMessage) of(PQfinish) of(PQflush) of(PQfname) of(PQfreemem)       \
    of(PQgetResult) of(PQgetisnull) of(PQgetlength) of(PQgetvalue) of(PQisBusy) of(PQlibVersion) of(PQnfields)         \
    of(PQntuples) of(PQpass) of(PQresultErrorField) of(PQresultStatus) of(PQsendQuery) of(PQsendQueryParams)           \
    of(PQserverVersion) of(PQsetErrorVerbosity) of(PQsetNoticeReceiver) of(PQsetSingleRowMode) of(PQsetnonblocking)    \
    of(PQsocket) of(PQsslAttribute) of(PQsslInUse) of(PQstatus) of(PQtransactionStatus)

struct inlet_pq {
#define INLET_PQ_MEMBER(name) __typeof__(name) *_Nonnull name;
    INLET_PQ_FUNCTIONS(INLET_PQ_MEMBER)
#undef INLET_PQ_MEMBER
};

/* Fills the table; the library stays open. Returns NULL, or why not: dlerror(3)'s words, or a missing function. */
static inline const char *_Nullable inlet_pq_load(struct inlet_pq *_Nonnull table, const char *_Nonnull file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
#define INLET_PQ_FIND(name)                                                                                            \
    if (!(table->name = (__typeof__(name) *)dlsym(library, #name))) return "it has no function " #name;
    INLET_PQ_FUNCTIONS(INLET_PQ_FIND)
#undef INLET_PQ_FIND
    return NULL;
}

/* The fields of an error, which are characters: Swift imports none of those. */
enum {
    INLET_PQ_SQLSTATE = PG_DIAG_SQLSTATE,
    INLET_PQ_MESSAGE = PG_DIAG_MESSAGE_PRIMARY,
    INLET_PQ_DETAIL = PG_DIAG_MESSAGE_DETAIL,
};

/* Notices are nothing for people or logs. */
static inline void inlet_pq_ignore(void *_Nullable context, const PGresult *_Nullable result) {
    (void)context;
    (void)result;
}

#endif
