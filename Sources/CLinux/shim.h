/* Calls that Swift cannot make itself: variadic functions, and GNU calls and constants that the Glibc module leaves
   out because it is built without _GNU_SOURCE. Numbers are those of the kernel's user-space headers. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>
#include <linux/stat.h>

/* fcntl-linux.h: these depend on the architecture or on _GNU_SOURCE. */
static const int inlet_o_noatime = 01000000;
#if defined(__aarch64__) || defined(__arm__) || defined(__powerpc64__)
static const int inlet_o_direct = 0200000;
#else
static const int inlet_o_direct = 040000;
#endif
static const int inlet_o_path = 010000000;
/* posix_spawnattr_setflags(3), POSIX_SPAWN_SETSID (glibc 2.26): only shown to those who ask for GNU's names. */
static const int inlet_spawn_setsid = 0x80;
static const int inlet_o_tmpfile = 020000000 | O_DIRECTORY;
static const int inlet_at_empty_path = 0x1000;
static const int inlet_f_setlease = 1024;
/* The time that futimens(3) leaves alone. */
static const long inlet_utime_omit = (1L << 30) - 2;

/* open(2) is variadic. */
static inline int inlet_open(const char *_Nonnull path, int flags, mode_t mode) { return open(path, flags, mode); }

/* openat(2) is variadic. */
static inline int inlet_open_at(int folder, const char *_Nonnull path, int flags, mode_t mode) {
    return openat(folder, path, flags, mode);
}

/* openat2(2) (Linux 5.6), by number: headers may be older than the kernel. `resolve` is RESOLVE_NO_MAGICLINKS (2),
   RESOLVE_NO_SYMLINKS (4), RESOLVE_BENEATH (8). */
static inline int inlet_open_below(int folder, const char *_Nonnull path, int flags, uint64_t resolve) {
    struct { uint64_t flags, mode, resolve; } how = {(uint64_t)(unsigned int)flags, 0, resolve};
    return (int)syscall(437, folder, path, &how, sizeof how);
}

/* fcntl(2) is variadic: F_SETLEASE with F_RDLCK or F_UNLCK. */
static inline int inlet_set_lease(int fd, int type) { return fcntl(fd, inlet_f_setlease, type); }

/* fcntl(2) is variadic: leaves direct I/O, keeps the other status flags. */
static inline int inlet_leave_direct(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags == -1 ? -1 : fcntl(fd, F_SETFL, flags & ~inlet_o_direct);
}

/* ioctl(2) is variadic: makes `target` share the extents of `source` (ioctl_ficlone(2)). */
static inline int inlet_clone(int target, int source) { return ioctl(target, FICLONE, source); }

/* ioctl(2) is variadic: columns of the terminal, 0 when `fd` is none. */
static inline int inlet_terminal_columns(int fd) {
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Likewise its rows. */
static inline int inlet_terminal_rows(int fd) {
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* adjtimex(2) is declared for _GNU_SOURCE only, and `struct timex` is large: 1 where a time service keeps the clock right, -1 on
   an error. Changes nothing. */
static inline int inlet_clock_is_synchronised(void) {
    struct timex state = {.modes = 0};
    int status = (int)syscall(SYS_adjtimex, &state);
    return status == -1 ? -1 : status != TIME_ERROR && !(state.status & STA_UNSYNC);
}

/* copy_file_range(2) is declared for _GNU_SOURCE only; glibc may emulate it, the kernel's answer is wanted. */
static inline ssize_t inlet_copy_file_range(int source, int64_t from, int target, int64_t to, size_t length) {
    return syscall(SYS_copy_file_range, source, &from, target, &to, length, 0U);
}

/* renameat2(2) with RENAME_NOREPLACE is declared for _GNU_SOURCE only. */
static inline int inlet_rename_noreplace(const char *_Nonnull from, const char *_Nonnull to) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1U);
}

/* prctl(2) is variadic: names the calling thread; the kernel keeps the first 15 bytes. */
static inline int inlet_name_thread(const char *_Nonnull name) { return prctl(PR_SET_NAME, name); }

/* prctl(2) is variadic: no core dump, whatever the limits are, and no look at the memory for others than root (PR_SET_DUMPABLE). */
static inline int inlet_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); }

/* flock(2) shares its name with a structure. */
int flock(int, int);
static inline int inlet_lock(int fd, int operation) { return flock(fd, operation); }

/* fcntl(2) is variadic: an exclusive lock on the whole file that belongs to the open file, not to the process (F_OFD_SETLK). */
static inline int inlet_take_lock(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, 37, &lock);
}

/* Likewise F_OFD_GETLK, for which reading suffices: 1 where another open file has such a lock. */
static inline int inlet_is_locked(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, 36, &lock) == -1 ? -1 : lock.l_type != F_UNLCK;
}

/* Declared since glibc 2.34: the child closes every descriptor from `first` on. Before that, those with O_CLOEXEC only. */
static inline int inlet_spawn_close_from(posix_spawn_file_actions_t *_Nonnull actions, int first) {
#if __GLIBC_PREREQ(2, 34)
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
#else
    (void)actions;
    (void)first;
    return 0;
#endif
}

/* prlimit(2) is declared for _GNU_SOURCE only: what a child may write, and how much it gives way. A negative size is no limit. */
static inline int inlet_restrain(pid_t process, int niceness, int64_t largest) {
    int result = niceness > 0 ? setpriority(PRIO_PROCESS, (id_t)process, getpriority(PRIO_PROCESS, 0) + niceness) : 0;
    struct { uint64_t now, most; } limit = {(uint64_t)largest, (uint64_t)largest};
    if (largest >= 0) result |= (int)syscall(SYS_prlimit64, process, RLIMIT_FSIZE, &limit, NULL);
    return result;
}

/* strptime(3) is declared for _XOPEN_SOURCE only. Whether the whole of `text` has that form. */
static inline int inlet_read_date(const char *_Nonnull text, const char *_Nonnull format, struct tm *_Nonnull date) {
    extern char *strptime(const char *, const char *, struct tm *);
    const char *end = strptime(text, format, date);
    return end != NULL && *end == 0;
}

/* pipe2(2) is declared for _GNU_SOURCE only. */
static inline int inlet_pipe(int *_Nonnull ends) { return (int)syscall(SYS_pipe2, ends, O_CLOEXEC); }

/* sendmsg(2) with SCM_RIGHTS, whose control data are macros: copies of at most two open files go with the first byte. A reader
   that has gone is an error, and no signal. */
static inline ssize_t inlet_send_files(
    int socket, const void *_Nullable bytes, size_t count, const int *_Nullable files, int number
) {
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (number > 0 && number <= 2) {
        size_t size = (size_t)number * sizeof(int);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(size);
        *CMSG_FIRSTHDR(&message) =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), files, size);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* fcntl(2) is variadic. */
static inline int inlet_set_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags == -1 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* makedev(3) is a macro: what `st_dev` is for two numbers of /proc. */
static inline uint64_t inlet_device(unsigned int major, unsigned int minor) { return gnu_dev_makedev(major, minor); }

/* What stat(2) says of a file, found out by statx(2) (Linux 4.11) without asking a file server that may have gone. Kernels and
   sandboxes without it are asked by fstatat(2). 1 for a regular file, 0 for anything else, -1 with errno. */
static inline int inlet_cached_status(const char *_Nonnull path, uint64_t *_Nonnull device, uint64_t *_Nonnull inode) {
#ifdef SYS_statx
    struct statx found;
    if (syscall(SYS_statx, AT_FDCWD, path, 0x4000 /* AT_STATX_DONT_SYNC */, STATX_TYPE | STATX_INO, &found) == 0) {
        *device = gnu_dev_makedev(found.stx_dev_major, found.stx_dev_minor);
        *inode = found.stx_ino;
        return (found.stx_mode & S_IFMT) == S_IFREG;
    }
    if (errno != ENOSYS && errno != EPERM) return -1;
#endif
    struct stat status;
    if (fstatat(AT_FDCWD, path, &status, 0) != 0) return -1;
    *device = status.st_dev;
    *inode = status.st_ino;
    return S_ISREG(status.st_mode);
}

/* fanotify_init(2) with FAN_CLASS_NOTIF, FAN_CLOEXEC, FAN_NONBLOCK and FAN_REPORT_DFID_NAME (Linux 5.9), by number: headers
   may be older than the kernel. */
static inline int inlet_fanotify_init(void) { return fanotify_init(0x1U | 0x2U | 0xC00U, O_RDONLY | O_CLOEXEC); }

/* fanotify_mark(2): FAN_MARK_ADD | FAN_MARK_ONLYDIR | FAN_MARK_FILESYSTEM for the file system of a folder. */
static inline int inlet_fanotify_mark(int group, uint64_t mask, const char *_Nonnull folder) {
    return fanotify_mark(group, 0x1U | 0x8U | 0x100U, mask, AT_FDCWD, folder);
}

/* open_by_handle_at(2) is declared for _GNU_SOURCE only. O_PATH, so that the folder needs not be readable. `handle` is a
   `struct file_handle`: two numbers of four bytes, then the handle. */
static inline int inlet_open_by_handle(int mount, void *_Nonnull handle) {
    return (int)syscall(SYS_open_by_handle_at, mount, handle, 010000000 | O_CLOEXEC);
}

/* name_to_handle_at(2) of an open folder, likewise; `handle` says how much room it has. */
static inline int inlet_handle_of(int folder, void *_Nonnull handle) {
    int mount = 0;
    return (int)syscall(SYS_name_to_handle_at, folder, "", handle, &mount, 0x1000);
}

/* statx(2) with STATX_MNT_ID (Linux 5.8), which the C library may not know: the number of the mount that `path` is on,
   symlinks not followed; 0 where the kernel does not say. */
static inline int inlet_mount_number(const char *_Nonnull path, uint64_t *_Nonnull number) {
    unsigned char answer[256] = {0};
    uint32_t mask = 0;
    if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0x1000U, answer) != 0) return -1;
    memcpy(&mask, answer, sizeof mask);
    *number = 0;
    if (mask & 0x1000U) memcpy(number, answer + 144, sizeof *number);
    return 0;
}

/* ioctl(2) is variadic. The volume ID of a mounted FAT file system by any of its folders (linux/msdos_fs.h): the four bytes
   that tools write as 1234-ABCD. */
static inline int inlet_fat_volume(int folder, uint32_t *_Nonnull number) {
    return ioctl(folder, _IOR('r', 0x13, uint32_t), number);
}

/* Likewise FS_IOC_GETFSUUID (Linux 6.9): how many bytes the UUID has, then those. */
static inline int inlet_file_system_uuid(int folder, unsigned char *_Nonnull answer) {
    struct inlet_uuid { unsigned char bytes[17]; };
    return ioctl(folder, _IOR(0x15, 0, struct inlet_uuid), answer);
}

/* Likewise FS_IOC_GETFSLABEL (Linux 4.18): up to 256 bytes, zeros after the label. */
static inline int inlet_file_system_label(int folder, char *_Nonnull answer) {
    return ioctl(folder, _IOR(0x94, 49, char[256]), answer);
}

/* syncfs(2) is declared for _GNU_SOURCE only. */
static inline int inlet_sync_file_system(int file) { return (int)syscall(SYS_syncfs, file); }

/* ioctl(2) is variadic: BLKROSET of an open block device, as blockdev(8) does with --setro and --setrw. */
static inline int inlet_set_read_only(int device, int is_read_only) { return ioctl(device, BLKROSET, &is_read_only); }

/* A file in memory (memfd_create(2), declared with its constants for _GNU_SOURCE only) that holds `bytes` and can not be
   changed any more: F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE. */
static inline int inlet_sealed_file(const void *_Nonnull bytes, size_t count) {
    const char *rest = (const char *)bytes;
    int failure, file = (int)syscall(SYS_memfd_create, "inlet-log", 3U);
    if (file < 0) return -1;
    while (count > 0) {
        ssize_t written = write(file, rest, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        rest += written;
        count -= (size_t)written;
    }
    if (count == 0 && fcntl(file, 1033, 0xF) == 0) return file;
    failure = errno;
    close(file);
    errno = failure;
    return -1;
}
