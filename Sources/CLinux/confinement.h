/* What a process gives up for good, by call numbers and constants that headers older than the kernel lack. */
#pragma once

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* landlock(7) (Linux 5.13): the version of what it can do; -1 where there is none, or it is switched off. */
static inline int inlet_landlock_version(void) { return (int)syscall(444, NULL, (size_t)0, 1U); }

/* landlock_create_ruleset(2): what is forbidden but for what its rules allow, and what reaches no process outside. Kernels
   before 6.12 know the files only. */
static inline int inlet_landlock_ruleset(uint64_t handled, uint64_t scoped) {
    struct { uint64_t files, ports, scoped; } attributes = {handled, 0, scoped};
    return (int)syscall(444, &attributes, scoped == 0 ? sizeof attributes.files : sizeof attributes, 0U);
}

/* landlock_add_rule(2), LANDLOCK_RULE_PATH_BENEATH: at, and below, what is open as `place`. */
static inline int inlet_landlock_allow(int ruleset, uint64_t rights, int place) {
    struct __attribute__((packed)) { uint64_t rights; int32_t place; } rule = {rights, place};
    return (int)syscall(445, ruleset, 1, &rule, 0U);
}

/* landlock_restrict_self(2): the calling thread, and those that it starts, for good. */
static inline int inlet_landlock_restrict(int ruleset) { return (int)syscall(446, ruleset, 0U); }

/* prctl(2) is variadic: no program that is started may have more rights than this process (PR_SET_NO_NEW_PRIVS). */
static inline int inlet_forbid_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL); }

/* prctl(2) is variadic: no program that is started has capabilities of ours (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL). */
static inline int inlet_keep_capabilities(void) { return prctl(47, 4UL, 0UL, 0UL, 0UL); }

/* Calls that neither Inlet nor a program that reads pictures has a use for: what @clock, @debug, @module, @mount, @obsolete,
   @privileged, @raw-io, @reboot and @swap of systemd.exec(5) name, but for those of the watcher (fanotify, file handles); keys,
   namespaces, the memory of other processes, and what goes past this filter (io_uring). */
static const uint32_t inlet_unused_calls[] = {
    SYS_acct, SYS_add_key, SYS_adjtimex, SYS_bpf, SYS_chroot, SYS_clock_adjtime, SYS_clock_settime, SYS_delete_module,
    SYS_finit_module, SYS_init_module, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mount, SYS_nfsservctl,
    SYS_perf_event_open, SYS_personality, SYS_pivot_root, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_quotactl,
    SYS_reboot, SYS_request_key, SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon,
    SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
#if defined(__x86_64__)
    SYS__sysctl, SYS_afs_syscall, SYS_create_module, SYS_get_kernel_syms, SYS_getpmsg, SYS_ioperm, SYS_iopl, SYS_modify_ldt,
    SYS_putpmsg, SYS_query_module, SYS_security, SYS_sysfs, SYS_tuxcall, SYS_uselib, SYS_ustat, SYS_vserver,
    320, /* kexec_file_load */
#else
    294, /* kexec_file_load */
#endif
    /* These have one number everywhere, and headers may be older: io_uring_setup, io_uring_enter, io_uring_register, open_tree,
       move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr, quotactl_fd, open_tree_attr. */
    425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467,
};

static inline int inlet_count_unused_calls(void) {
    return (int)(sizeof inlet_unused_calls / sizeof *inlet_unused_calls);
}

/* The kernel's name for the processors that this is built for (linux/audit.h); 0 for those whose calls nobody has looked at. */
#if defined(__x86_64__)
static const uint32_t inlet_processor = 0xC000003EU;
#elif defined(__aarch64__)
static const uint32_t inlet_processor = 0xC00000B7U;
#else
static const uint32_t inlet_processor = 0;
#endif

/* seccomp(2), SECCOMP_GET_ACTION_AVAIL (Linux 4.14): whether calls can be answered by an error. */
static inline int inlet_can_filter_calls(void) {
    uint32_t action = SECCOMP_RET_ERRNO;
    return inlet_processor != 0 && syscall(SYS_seccomp, 2U, 0U, &action) == 0;
}

/* seccomp(2), SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_TSYNC (1) where `flags` says so: the calls above give EPERM, for
   good, as do all of another processor's form (32 bits, x32) and clone(2) for namespaces; clone3(2), whose flags a filter does
   not see, gives ENOSYS, so that clone(2) is taken; sockets are local, of the Internet, or to ask for addresses. */
static inline int inlet_filter_calls(unsigned int flags) {
    enum { unused = sizeof inlet_unused_calls / sizeof *inlet_unused_calls };
    const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM, allow = SECCOMP_RET_ALLOW;
    const uint32_t namespaces = 0x7E020000U;
    const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    struct sock_filter program[2 * unused + 32];
    unsigned short n = 0;
    if (inlet_processor == 0) return errno = ENOSYS, -1;
#define INLET_STEP(code, k, yes, no) program[n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no)
    INLET_STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, inlet_processor, 1, 0);
    INLET_STEP(BPF_RET | BPF_K, refuse, 0, 0);
    INLET_STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
#if defined(__x86_64__)
    INLET_STEP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000U, 0, 1);
    INLET_STEP(BPF_RET | BPF_K, refuse, 0, 0);
#endif
    for (int call = 0; call < unused; call++) {
        INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, inlet_unused_calls[call], 0, 1);
        INLET_STEP(BPF_RET | BPF_K, refuse, 0, 0);
    }
    INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, 435 /* clone3 */, 0, 1);
    INLET_STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
    /* Both processors store the low half of an argument first. */
    INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    INLET_STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args), 0, 0);
    INLET_STEP(BPF_JMP | BPF_JSET | BPF_K, namespaces, 0, 1);
    INLET_STEP(BPF_RET | BPF_K, refuse, 0, 0);
    INLET_STEP(BPF_RET | BPF_K, allow, 0, 0);
    INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0);
    INLET_STEP(BPF_RET | BPF_K, allow, 0, 0);
    INLET_STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args), 0, 0);
    for (unsigned family = 0; family < sizeof families / sizeof *families; family++) {
        INLET_STEP(BPF_JMP | BPF_JEQ | BPF_K, families[family], 0, 1);
        INLET_STEP(BPF_RET | BPF_K, allow, 0, 0);
    }
    INLET_STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT, 0, 0);
#undef INLET_STEP
    struct sock_fprog whole = {n, program};
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole);
    /* The number of a thread that has a filter of its own. */
    if (result > 0) return errno = EBUSY, -1;
    return (int)result;
}
