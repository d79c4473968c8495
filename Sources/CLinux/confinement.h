/* What a process gives up for good, by call numbers and constants that headers older than the kernel lack. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
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
