/* The helper process: what a confined agent can no longer do itself. It starts the programs of the configuration,
   looks at the files that other processes have open, and starts the confined reader of strangers' files. Plain C on
   libc alone, so that it maps next to nothing.

   The program `inlet-host` is this and nothing else. Where only `inlet` was copied, `inlet` itself takes the part. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The first message names it: an `inlet-host` of another version is not used. Raise it with every change of a
   message. */
static const int inlet_host_version = 1;

/* The one argument by which a program becomes the helper, before its own `main`. Requests come on standard input. */
#define INLET_HOST_ROLE "process-host"

/* A line of `/proc/PID/maps` (proc(5)). */
typedef struct {
    uint64_t device, inode;
    /* Whether it is shared and writable: such a process may change the file. */
    bool may_change;
    /* Within the line. NULL for a mapping of no file. */
    const char *_Nullable path;
} inlet_host_mapping;

/* Reads a line without its line feed. False for anything else. */
bool inlet_host_read_mapping(const char *_Nonnull line, inlet_host_mapping *_Nonnull mapping);

/* Whether `arguments` are the command of the configuration that `words` are. `{in}` and `{out}` in a word stand for
   any path below `place`, which ends with a slash; for any path where `place` is empty. Both lists end with NULL. A
   program without a path may be given by an absolute one: the helper looks it up again. */
bool inlet_host_matches(
    const char *_Nullable const *_Nonnull words, const char *_Nonnull place,
    const char *_Nullable const *_Nonnull arguments);

/* How many fields a message's body has; -1 where a field is longer than the rest. */
long inlet_host_count_fields(const uint8_t *_Nonnull body, size_t size);
