/* libpq, PostgreSQL's client library. It is opened at run time (dlopen(3)): an agent without a fleet has nothing of it. */
#ifndef INLET_CPOSTGRES_H
#define INLET_CPOSTGRES_H

#include <postgresql/libpq-fe.h>

#endif
