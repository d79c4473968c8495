/* What a child gives up before it reads strangers' bytes: landlock(7), seccomp(2), limits and capabilities. */
#include "host.h"

#include "confinement.h"
#include <dirent.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* linux/landlock.h, `LANDLOCK_ACCESS_FS_…`. */
enum : uint64_t {
    executing = 1 << 0, writing = 1 << 1, reading = 1 << 2, listing = 1 << 3, making_character_devices = 1 << 6,
    making_block_devices = 1 << 11, truncating = 1 << 14, controlling_devices = 1 << 15,
    of_files = writing | truncating,
};

/* Every right that the kernel knows: it refuses a ruleset that names others. */
static uint64_t known_rights(int version) {
    return (1U << (version < 2 ? 13 : version < 3 ? 14 : version < 5 ? 15 : 16)) - 1;
}

/* Neither signals nor abstract sockets reach another process (Linux 6.12). */
static uint64_t scopes(int version) { return version >= 6 ? 3 : 0; }

static int allow(int ruleset, uint64_t rights, int place) {
    struct stat status;
    if (place < 0 || fstat(place, &status) != 0) return -1;
    return inlet_landlock_allow(ruleset, S_ISDIR(status.st_mode) ? rights : rights & of_files, place);
}

/* Graphics cards and codecs, by the start of their names; not disks, nor memory shared with other programs
   (`/dev/shm`). */
static bool computes(const char *name) {
    static const char *const names[] = {"null", "zero", "full", "dri", "kfd", "dma_heap", "mpp_service", "rga"};
    static const char *const beginnings[] = {"nvidia", "video", "media"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (strcmp(name, names[at]) == 0) return true;
    for (size_t at = 0; at < sizeof beginnings / sizeof *beginnings; at++)
        if (strncmp(name, beginnings[at], strlen(beginnings[at])) == 0) return true;
    return false;
}

/* A device that cannot be seen here cannot be used by the program either, which reports that itself. */
static void allow_devices(int ruleset, uint64_t rights) {
    DIR *devices = opendir("/dev");
    for (struct dirent *entry; devices && (entry = readdir(devices));) {
        if (!computes(entry->d_name)) continue;
        int device = openat(dirfd(devices), entry->d_name, O_PATH | O_CLOEXEC);
        allow(ruleset, rights & of_files, device);
        if (device >= 0) close(device);
    }
    if (devices) closedir(devices);
}

/* Opens `folder` below `base`, through no symlink. */
static int open_below(const char *folder, const char *base) {
    int place = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (place >= 0 && *folder) {
        size_t length = strcspn(folder, "/");
        char name[256];
        if (length >= sizeof name) return errno = ENAMETOOLONG, -1;
        memcpy(name, folder, length);
        name[length] = 0;
        folder += length + (folder[length] == '/');
        place = openat(place, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    return place;
}

/* This process writes, creates, renames and removes in `folder` alone, and writes to devices that compute pictures or
   discard input. Not restricted: reading, starting programs, and modes, owners, times and attributes of files; before
   Linux 6.2 (version 3) their lengths. */
int hold_writes(const char *folder, const char *base) {
    int version = inlet_landlock_version();
    uint64_t writes = known_rights(version) & ~(executing | reading | listing | controlling_devices);
    int place = open_below(folder, base);
    if (place < 0) return -1;
    int ruleset = inlet_landlock_ruleset(writes, scopes(version));
    if (ruleset < 0) return -1;
    if (allow(ruleset, writes & ~(making_character_devices | making_block_devices), place) != 0) return -1;
    allow_devices(ruleset, writes);
    if (inlet_forbid_new_privileges() != 0) return -1;
    return inlet_landlock_restrict(ruleset);
}

/* What a reader needs once its libraries are loaded: to read the question, to answer, memory, and an end. */
static const uint32_t reader_calls[] = {
    SYS_recvmsg, SYS_write, SYS_close, SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_ppoll,
    SYS_setitimer, SYS_clock_gettime, SYS_getrandom, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_exit, SYS_exit_group,
#if defined(SYS_poll)
    SYS_poll,
#endif
};

/* All other calls answer EPERM, for good. No new memory can hold code. */
static int keep_reader_calls(void) {
    enum { calls = sizeof reader_calls / sizeof *reader_calls };
    const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM, allow = SECCOMP_RET_ALLOW;
    struct sock_filter program[2 * calls + 16];
    unsigned short n = 0;
    if (inlet_processor == 0) return errno = ENOSYS, -1;
#define STEP(code, k, yes, no) program[n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no)
    STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    STEP(BPF_JMP | BPF_JEQ | BPF_K, inlet_processor, 1, 0);
    STEP(BPF_RET | BPF_K, refuse, 0, 0);
    STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (int call = 0; call < calls; call++) {
        STEP(BPF_JMP | BPF_JEQ | BPF_K, reader_calls[call], 0, 1);
        STEP(BPF_RET | BPF_K, allow, 0, 0);
    }
    STEP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
    STEP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3);
    STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]), 0, 0);
    STEP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
    STEP(BPF_RET | BPF_K, allow, 0, 0);
    STEP(BPF_RET | BPF_K, refuse, 0, 0);
#undef STEP
    struct sock_fprog whole = {n, program};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &whole);
}

static void limit(int what, rlim_t most) {
    struct rlimit both = {most, most};
    setrlimit((__rlimit_resource_t)what, &both);
}

/* No file, no folder, no socket, no program, no capability. The limits hold on every kernel, also where a container
   allows neither Landlock nor filters: no descriptor can be made beside the first. */
int hold_everything(void) {
    int version = inlet_landlock_version();
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    int ruleset = version > 0 ? inlet_landlock_ruleset(known_rights(version), scopes(version)) : -1;
    if (inlet_forbid_new_privileges() != 0 || syscall(SYS_capset, &head, none) != 0) return -1;
    if (ruleset >= 0) (inlet_landlock_restrict(ruleset), close(ruleset));
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NPROC, 0);
    limit(RLIMIT_NOFILE, 1);
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
    limit(RLIMIT_DATA, 512 << 20);
#endif
    if (inlet_can_filter_calls()) return keep_reader_calls();
    return 0;
}
