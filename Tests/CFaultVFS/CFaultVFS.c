#include "CFaultVFS.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;

static atomic_int fault_kind;
static atomic_int is_forever;
/// Calls to go until the fault; 0 or less = none.
static atomic_long calls_left;
static atomic_long calls_failed;
static atomic_int is_armed;

typedef struct FaultFile {
    sqlite3_file base;
    /// Placed right behind.
    sqlite3_file *real;
} FaultFile;

static sqlite3_file *real_file(sqlite3_file *file) { return ((FaultFile *)file)->real; }

/// The code to fail with, or SQLITE_OK. Codes of 0 say that the fault does not concern the call.
static int next_fault(int full, int io, int descriptors) {
    if (!atomic_load(&is_armed)) return SQLITE_OK;
    int kind = atomic_load(&fault_kind);
    int code = kind == INLET_FAULT_FULL ? full : kind == INLET_FAULT_IO ? io : descriptors;
    if (code == SQLITE_OK) return SQLITE_OK;
    long left = atomic_fetch_sub(&calls_left, 1);
    if (left > 1 || (left < 1 && !atomic_load(&is_forever))) return SQLITE_OK;
    atomic_fetch_add(&calls_failed, 1);
    return code;
}

static int fault_close(sqlite3_file *file) { return real_file(file)->pMethods->xClose(real_file(file)); }

static int fault_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    int code = next_fault(0, SQLITE_IOERR_READ, 0);
    return code ? code : real_file(file)->pMethods->xRead(real_file(file), bytes, count, offset);
}

static int fault_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    int code = next_fault(SQLITE_FULL, SQLITE_IOERR_WRITE, 0);
    if (!code) return real_file(file)->pMethods->xWrite(real_file(file), bytes, count, offset);
    if (count > 1) real_file(file)->pMethods->xWrite(real_file(file), bytes, count / 2, offset);
    return code;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size) {
    int code = next_fault(0, SQLITE_IOERR_TRUNCATE, 0);
    return code ? code : real_file(file)->pMethods->xTruncate(real_file(file), size);
}

static int fault_sync(sqlite3_file *file, int flags) {
    int code = next_fault(SQLITE_IOERR_FSYNC, SQLITE_IOERR_FSYNC, 0);
    return code ? code : real_file(file)->pMethods->xSync(real_file(file), flags);
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size) {
    int code = next_fault(0, SQLITE_IOERR_FSTAT, 0);
    return code ? code : real_file(file)->pMethods->xFileSize(real_file(file), size);
}

static int fault_lock(sqlite3_file *file, int level) { return real_file(file)->pMethods->xLock(real_file(file), level); }

static int fault_unlock(sqlite3_file *file, int level) {
    return real_file(file)->pMethods->xUnlock(real_file(file), level);
}

static int fault_reserved(sqlite3_file *file, int *result) {
    return real_file(file)->pMethods->xCheckReservedLock(real_file(file), result);
}

static int fault_control(sqlite3_file *file, int operation, void *argument) {
    return real_file(file)->pMethods->xFileControl(real_file(file), operation, argument);
}

static int fault_sector(sqlite3_file *file) { return real_file(file)->pMethods->xSectorSize(real_file(file)); }

static int fault_device(sqlite3_file *file) {
    return real_file(file)->pMethods->xDeviceCharacteristics(real_file(file));
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
    int code = next_fault(SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN);
    return code ? code : real_file(file)->pMethods->xShmMap(real_file(file), page, size, extend, memory);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return real_file(file)->pMethods->xShmLock(real_file(file), offset, count, flags);
}

static void fault_shm_barrier(sqlite3_file *file) { real_file(file)->pMethods->xShmBarrier(real_file(file)); }

static int fault_shm_unmap(sqlite3_file *file, int must_delete) {
    return real_file(file)->pMethods->xShmUnmap(real_file(file), must_delete);
}

/// Version 2: with the calls of the write-ahead log, without those that map the database into memory.
static const sqlite3_io_methods fault_methods = {
    .iVersion = 2,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_reserved,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_device,
    .xShmMap = fault_shm_map,
    .xShmLock = fault_shm_lock,
    .xShmBarrier = fault_shm_barrier,
    .xShmUnmap = fault_shm_unmap,
};

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out) {
    (void)vfs;
    file->pMethods = NULL;
    int on_full = (flags & SQLITE_OPEN_CREATE) ? SQLITE_CANTOPEN : 0;
    int code = next_fault(on_full, SQLITE_CANTOPEN, SQLITE_CANTOPEN);
    if (code) return code;
    FaultFile *fault_file = (FaultFile *)file;
    fault_file->real = (sqlite3_file *)(fault_file + 1);
    code = real_vfs->xOpen(real_vfs, name, fault_file->real, flags, flags_out);
    // SQLite closes what has methods, even after an error.
    if (fault_file->real->pMethods) file->pMethods = &fault_methods;
    return code;
}

static int fault_delete(sqlite3_vfs *vfs, const char *name, int must_sync) {
    (void)vfs;
    int code = next_fault(0, SQLITE_IOERR_DELETE, 0);
    return code ? code : real_vfs->xDelete(real_vfs, name, must_sync);
}

void inlet_fault_install(void) {
    if (real_vfs) return;
    real_vfs = sqlite3_vfs_find(NULL);
    // Everything else is the real one's, and looks at nothing that differs here.
    memcpy(&fault_vfs, real_vfs, sizeof fault_vfs);
    fault_vfs.pNext = NULL;
    fault_vfs.zName = "inlet-faults";
    fault_vfs.szOsFile = (int)sizeof(FaultFile) + real_vfs->szOsFile;
    fault_vfs.xOpen = fault_open;
    fault_vfs.xDelete = fault_delete;
    sqlite3_vfs_register(&fault_vfs, 1);
}

void inlet_fault_arm(InletFault fault, long first, int forever) {
    atomic_store(&fault_kind, (int)fault);
    atomic_store(&is_forever, forever);
    atomic_store(&calls_left, first);
    atomic_store(&calls_failed, 0);
    atomic_store(&is_armed, 1);
}

long inlet_fault_disarm(void) {
    atomic_store(&is_armed, 0);
    return atomic_load(&calls_failed);
}

static int note_answer(void *is_sound, int count, char **values, char **names) {
    (void)names;
    *(int *)is_sound = count == 1 && values[0] && strcmp(values[0], "ok") == 0;
    return 0;
}

int inlet_fault_is_sound(const char *path) {
    sqlite3 *database = NULL;
    int is_sound = 0;
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(database, "PRAGMA integrity_check(1)", note_answer, &is_sound, NULL);
    sqlite3_close(database);
    return is_sound;
}
