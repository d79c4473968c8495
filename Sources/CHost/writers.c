/* The files that this machine's processes have open for writing, as far as `/proc` shows them to this user (proc(5)).
   No file server is asked. */
#include "host.h"

#include "shim.h"
#include <dirent.h>
#include <time.h>

/* The most to look at, so that a machine with a hundred thousand sockets costs no more than others. */
enum { most_descriptors = 65536, most_mapping_bytes = 16 << 20, most_users = 16 };

typedef struct {
    uint64_t device, inode;
    pid_t process;
    /* The process's own view of the path, for a mapping; NULL for a descriptor. */
    char *path;
} Writer;

/* One look at all processes. */
typedef struct {
    Writer *writers;
    size_t count;
    long descriptors_left, mapping_bytes_left;
    /* By the clock of files, then by the steady one. Nanoseconds. */
    int64_t begin, end, cost;
} Scan;

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* `7fac12c35000-7fac12c36000 rw-s 00000000 fe:00 16239092      /srv/drop/film.mov` */
bool inlet_host_read_mapping(const char *line, inlet_host_mapping *mapping) {
    char modes[5] = "";
    unsigned int major, minor;
    unsigned long long inode;
    int place = 0;
    if (sscanf(line, "%*[0-9a-f-] %4[rwxsp-] %*[0-9a-f] %x:%x %llu %n", modes, &major, &minor, &inode, &place) != 4)
        return false;
    if (strlen(modes) != 4 || place == 0) return false;
    *mapping = (inlet_host_mapping){
        .device = inlet_device(major, minor), .inode = inode,
        .may_change = modes[1] == 'w' && modes[3] == 's' && inode != 0 && line[place] == '/',
        .path = line[place] == '/' ? line + place : NULL};
    return true;
}

/* Calls `found` with each mapping of a process until it answers true, and answers that. */
static bool any_mapping(
    pid_t process, long *bytes_left, bool (*found)(const inlet_host_mapping *, pid_t, void *), void *context
) {
    char path[32], *line = NULL;
    size_t room = 0;
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "re");
    if (!maps) return false;
    for (ssize_t size; !is_found && *bytes_left > 0 && (size = getline(&line, &room, maps)) > 0;) {
        inlet_host_mapping mapping;
        *bytes_left -= size;
        if (line[size - 1] == '\n') line[size - 1] = 0;
        is_found = inlet_host_read_mapping(line, &mapping) && found(&mapping, process, context);
    }
    free(line);
    fclose(maps);
    return is_found;
}

/* Calls `found` with each descriptor's link of a process until it answers true, and answers that. One that has ended,
   or is another user's, has none. */
static bool any_descriptor(
    pid_t process, long *left, bool (*found)(const char *, pid_t, void *), void *context
) {
    char path[64];
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *folder = opendir(path);
    if (!folder) return false;
    for (struct dirent *entry; !is_found && *left > 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        *left -= 1;
        snprintf(path, sizeof path, "/proc/%d/fd/%.16s", process, entry->d_name);
        is_found = found(path, process, context);
    }
    closedir(folder);
    return is_found;
}

/* The number of the next process; 0 after the last. */
static pid_t next_process(DIR *folder) {
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (*end == 0 && number > 0) return (pid_t)number;
    }
    return 0;
}

static void add(Scan *scan, Writer writer) {
    scan->writers = resize(scan->writers, scan->count + 1, sizeof writer);
    scan->writers[scan->count++] = writer;
}

/* A regular file that is open for writing, by the link's own permission bits. */
static bool add_descriptor(const char *link, pid_t process, void *scan) {
    struct stat status;
    uint64_t device, inode;
    if (lstat(link, &status) == 0 && status.st_mode & S_IWUSR && inlet_cached_status(link, &device, &inode) == 1)
        add(scan, (Writer){device, inode, process, NULL});
    return false;
}

static bool add_mapping(const inlet_host_mapping *mapping, pid_t process, void *scan) {
    if (mapping->may_change)
        add(scan, (Writer){mapping->device, mapping->inode, process, need(strdup(mapping->path))});
    return false;
}

static void look(Scan *scan) {
    for (size_t writer = 0; writer < scan->count; writer++) free(scan->writers[writer].path);
    free(scan->writers);
    *scan = (Scan){.descriptors_left = most_descriptors, .mapping_bytes_left = most_mapping_bytes};
    int64_t start = now(CLOCK_MONOTONIC);
    scan->begin = now(CLOCK_REALTIME);
    DIR *processes = opendir("/proc");
    for (pid_t process; processes && (process = next_process(processes)) > 0;) {
        any_descriptor(process, &scan->descriptors_left, add_descriptor, scan);
        any_mapping(process, &scan->mapping_bytes_left, add_mapping, scan);
    }
    if (processes) closedir(processes);
    scan->end = now(CLOCK_MONOTONIC);
    scan->cost = scan->end - start;
}

/* A scan is used again for ten times its cost, a second at most: scans take at most a tenth of the time. It does not
   judge files that changed since it began; the kernel's file times lag behind its clock by up to 20 ms. */
static bool judges(const Scan *scan, int64_t changed) {
    int64_t second = 1000000000, worth = scan->cost * 10 < second ? scan->cost * 10 : second;
    return scan->end > 0 && now(CLOCK_MONOTONIC) < scan->end + worth && changed < scan->begin - second / 50;
}

/* On btrfs and overlayfs the kernel gives mappings another device number than stat(2): there the path distinguishes
   them. */
static const Writer *writer_of(const Scan *scan, uint64_t device, uint64_t inode, const char *path) {
    const Writer *mapping = NULL;
    for (const Writer *writer = scan->writers; writer < scan->writers + scan->count; writer++) {
        if (writer->inode != inode) continue;
        if (!writer->path && writer->device == device) return writer;
        if (writer->path && !mapping && (writer->device == device || strcmp(writer->path, path) == 0)) mapping = writer;
    }
    return mapping;
}

/* Its number, its `comm` (the first 15 bytes of its program's name) and whether it only maps the file. */
static void add_process(Answer *answer, pid_t process, bool is_mapping) {
    char path[32], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = process > 0 ? fopen(path, "re") : NULL;
    if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = 0;
    else if (process > 0) strcpy(name, "a process that has ended");
    if (file) fclose(file);
    add_number(answer, process);
    add_text(answer, name);
    add_number(answer, is_mapping);
}

static Answer begin_holders(const char *number, size_t count) {
    Answer answer = begin_answer();
    add_text(&answer, number);
    add_text(&answer, "holders");
    add_number(&answer, (long long)count);
    return answer;
}

void answer_holders(int socket, Message *message) {
    static Scan recent;
    bool is_whole = true;
    const char *number = take(message, &is_whole);
    bool is_fresh = take_number(message, &is_whole) == 1;
    size_t count = take_count(message, &is_whole);
    Answer answer = begin_holders(number, count);
    for (size_t file = 0; file < count; file++) {
        const char *path = take(message, &is_whole);
        int64_t changed = take_number(message, &is_whole);
        uint64_t inode = (uint64_t)take_number(message, &is_whole);
        uint64_t device = (uint64_t)take_number(message, &is_whole);
        /* One look serves all files of a question. */
        if (is_fresh ? file == 0 : !judges(&recent, changed)) look(&recent);
        const Writer *writer = writer_of(&recent, device, inode, path);
        add_process(&answer, writer ? writer->process : 0, writer && writer->path);
    }
    send_answer(socket, &answer);
}

static bool is_on(const char *link, pid_t process, void *device) {
    (void)process;
    uint64_t found, inode;
    return inlet_cached_status(link, &found, &inode) >= 0 && found == *(uint64_t *)device;
}

static bool is_mapping_on(const inlet_host_mapping *mapping, pid_t process, void *device) {
    (void)process;
    return mapping->inode != 0 && mapping->device == *(uint64_t *)device;
}

/* Whether an open file or folder, the working or root folder, or a mapping of a process is on the file system. */
static bool uses(pid_t process, uint64_t *device, long *descriptors_left) {
    char path[32];
    long mapping_bytes_left = 4 << 20;
    snprintf(path, sizeof path, "/proc/%d/cwd", process);
    if (is_on(path, process, device)) return true;
    snprintf(path, sizeof path, "/proc/%d/root", process);
    return is_on(path, process, device) || any_descriptor(process, descriptors_left, is_on, device)
        || any_mapping(process, &mapping_bytes_left, is_mapping_on, device);
}

void answer_users(int socket, Message *message) {
    bool is_whole = true;
    const char *number = take(message, &is_whole);
    uint64_t device = (uint64_t)take_number(message, &is_whole);
    pid_t found[most_users];
    size_t count = 0;
    long left = most_descriptors;
    DIR *processes = opendir("/proc");
    for (pid_t process; processes && count < most_users && left > 0 && (process = next_process(processes)) > 0;)
        if (uses(process, &device, &left)) found[count++] = process;
    if (processes) closedir(processes);
    Answer answer = begin_holders(number, count);
    for (size_t user = 0; user < count; user++) add_process(&answer, found[user], false);
    send_answer(socket, &answer);
}
