#pragma once

#include <sqlite3.h>

/// Stops SQLite from counting the memory that it allocates (SQLITE_CONFIG_MEMSTATUS): nobody asks for the figure, and it costs
/// a lock for every allocation. `sqlite3_config` has variable arguments, which Swift cannot call. Refused, without harm, once
/// the library is in use.
static inline int inlet_sqlite_leave_memory_uncounted(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Lets a database be named by a URI, where the library was not built to take one anyhow: it is the only way to open a file
/// without making others beside it. Refused, without harm, once SQLite is in use.
static inline int inlet_sqlite_allow_uris(void) { return sqlite3_config(SQLITE_CONFIG_URI, 1); }
