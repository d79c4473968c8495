/// SQLite's file calls with faults, for tests only: a VFS (sqlite.org/vfs.html) around the default one.
#ifndef INLET_FAULT_VFS_H
#define INLET_FAULT_VFS_H

/// What a call fails like.
typedef enum InletFault {
    /// ENOSPC: writes, syncs, new files, the index of the log.
    INLET_FAULT_FULL = 0,
    /// EIO: everything. Half of a write is done.
    INLET_FAULT_IO = 1,
    /// EMFILE: what opens a file.
    INLET_FAULT_DESCRIPTORS = 2
} InletFault;

/// Makes the VFS the default of this process, for connections opened from now on. Once.
void inlet_fault_install(void);

/// From now on counts the calls that `fault` concerns, and fails number `first` (from 1), or all from that one on.
void inlet_fault_arm(InletFault fault, long first, int forever);

/// Ends the faults. - Returns: how many calls failed since `inlet_fault_arm`.
long inlet_fault_disarm(void);

/// Whether `PRAGMA integrity_check` of the database finds nothing; 0 also when it cannot be opened.
int inlet_fault_is_sound(const char *path);

#endif
