#pragma once

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sqlite3.h>

/// Stops SQLite from counting the memory that it allocates (SQLITE_CONFIG_MEMSTATUS): nobody asks for the figure, and it costs
/// a lock for every allocation. `sqlite3_config` has variable arguments, which Swift cannot call. Refused, without harm, once
/// the library is in use.
static inline int inlet_sqlite_leave_memory_uncounted(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Lets a database be named by a URI, where the library was not built to take one anyhow: it is the only way to open a file
/// without making others beside it. Refused, without harm, once SQLite is in use.
static inline int inlet_sqlite_allow_uris(void) { return sqlite3_config(SQLITE_CONFIG_URI, 1); }

/// SQLite makes the index of its write-ahead log (`-shm`) by one byte at the end of each 4 KiB, and maps it: where the file
/// system's blocks are smaller the rest are holes, and on a full disk the first write to one of them is a SIGBUS.
static inline ssize_t inlet_write_whole_page(int file, const void *bytes, size_t count, off_t place) {
    if (count == 1 && place % 4096 == 4095) {
        int error = posix_fallocate(file, place - 4095, 4096);
        if (error == ENOSPC || error == EDQUOT) { errno = error; return -1; }
    }
    return pwrite(file, bytes, count, place);
}

/// Has SQLite write so from now on, by whichever call it was built to write with.
///
/// - Returns: whether it does.
static inline int inlet_sqlite_fill_holes(void) {
    _Static_assert(sizeof(off_t) == 8, "pwrite64 takes 64 bits");
    sqlite3_vfs *files = sqlite3_vfs_find("unix");
    if (!files || files->iVersion < 3) return 0;
    const char *names[] = {"pwrite64", "pwrite"};
    for (int i = 0; i < 2; i++) {
        sqlite3_syscall_ptr call = (sqlite3_syscall_ptr)inlet_write_whole_page;
        if (files->xGetSystemCall(files, names[i])) return files->xSetSystemCall(files, names[i], call) == SQLITE_OK;
    }
    return 0;
}
