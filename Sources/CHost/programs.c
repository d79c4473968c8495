/* Starts programs: those of the configuration alone for a confined agent, any for another. */
#include "host.h"

#include "confinement.h"
#include "shim.h"
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

/* A command of the configuration. */
typedef struct {
    char **words;
    /* The prefix of its paths, up to a slash; empty for any. */
    char *place;
    bool has_places;
    /* Whether its runs write in their own folder alone: the kernel must be able to enforce that. */
    bool is_held;
    /* Where its runs' folders are, without symlinks, and the rest below it. */
    char *base, *rest;
} Command;

static Command *commands;
static size_t command_count;
/* The variables that the agent may set: nothing that would make the dynamic linker load something else. */
static char **variables;
static size_t variable_count;
static bool is_told, allows_everything;

void allow_everything(void) {
    if (!is_told) is_told = allows_everything = true;
}

/* Resolves the folder of runs now: later the agent could put symlinks there. Only the configuration decides where
   that is. */
static void find_base(Command *command) {
    size_t length = strlen(command->place);
    char *above = need(strdup(command->place));
    while (length > 1 && above[length - 1] == '/') above[--length] = 0;
    do {
        char *name = strrchr(above, '/');
        if (!name) break;
        char *rest = NULL;
        if (asprintf(&rest, "%s%s%s", name + 1, command->rest ? "/" : "", command->rest ? command->rest : "") < 0)
            _exit(exit_memory);
        free(command->rest);
        command->rest = rest;
        *name = 0;
        command->base = realpath(*above ? above : "/", NULL);
    } while (!command->base);
    free(above);
}

static char **take_list(Message *message, bool *is_whole) {
    size_t count = take_count(message, is_whole);
    char **list = resize(NULL, count + 1, sizeof *list);
    for (size_t item = 0; item < count; item++) list[item] = take(message, is_whole);
    list[count] = NULL;
    return list;
}

static char **copy_list(char **list) {
    for (char **item = list; *item; item++) *item = need(strdup(*item));
    return list;
}

/* A second list is refused. */
void hear_commands(Message *message) {
    bool is_whole = true;
    if (is_told) return;
    is_told = true;
    variables = copy_list(take_list(message, &is_whole));
    while (variables[variable_count]) variable_count++;
    size_t count = take_count(message, &is_whole);
    commands = resize(NULL, count, sizeof *commands);
    for (size_t number = 0; number < count && is_whole; number++) {
        Command command = {.place = need(strdup(take(message, &is_whole)))};
        command.words = copy_list(take_list(message, &is_whole));
        command.has_places = has_places((const char *const *)command.words);
        command.is_held = command.has_places && *command.place && inlet_landlock_version() >= 2;
        if (command.is_held) find_base(&command);
        commands[command_count++] = command;
    }
}

static const char *search_path(void) {
    const char *path = getenv("PATH");
    return path ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

/* The full path of a program, as a shell would find it. Not the one that the agent found: it could have put a program
   there. */
static char *find_program(const char *word) {
    const char *path = search_path();
    while (!strchr(word, '/') && *path) {
        size_t length = strcspn(path, ":");
        char *found = NULL;
        struct stat status;
        if (asprintf(&found, "%.*s/%s", (int)length, path, word) < 0) _exit(exit_memory);
        if (*found == '/' && stat(found, &status) == 0 && S_ISREG(status.st_mode) && access(found, X_OK) == 0)
            return found;
        free(found);
        path += length + (path[length] != 0);
    }
    return need(strdup(word));
}

static char *variable(const char *name, const char *value) {
    char *text = NULL;
    if (asprintf(&text, "%s=%s", name, value) < 0) _exit(exit_memory);
    return text;
}

static bool may_set(const char *name, const Command *command) {
    if (!command) return true;
    if (command->has_places && (strcmp(name, "HOME") == 0 || strcmp(name, "TMPDIR") == 0)) return true;
    for (size_t known = 0; known < variable_count; known++)
        if (strcmp(variables[known], name) == 0) return true;
    return false;
}

static const char *own_home(void) {
    const char *home = getenv("HOME");
    if (home && home[0] == '/') return home;
    struct passwd *entry = getpwuid(geteuid());
    return entry ? entry->pw_dir : NULL;
}

/* Reads the variables, and the folder of the run (TMPDIR). Programs that get files have a home of their run's own. */
static void take_environment(Message *message, const Command *command, Order *order, char **folder, bool *is_whole) {
    size_t count = take_count(message, is_whole), used = 0;
    order->environment = resize(NULL, count + 3, sizeof *order->environment);
    if (command) order->environment[used++] = variable("PATH", search_path());
    const char *home = command && !command->has_places ? own_home() : NULL;
    if (home) order->environment[used++] = variable("HOME", home);
    for (size_t number = 0; number < count; number++) {
        char *name = take(message, is_whole), *value = take(message, is_whole);
        if (strcmp(name, "TMPDIR") == 0) *folder = value;
        if (may_set(name, command)) order->environment[used++] = variable(name, value);
    }
    order->environment[used] = NULL;
}

/* The folder of a run below the commands' `base`; NULL where the agent names none below `place`. */
static char *folder_below(const Command *command, const char *named) {
    size_t length = strlen(command->place);
    char *folder = NULL;
    if (!command->base || !named || strncmp(named, command->place, length) != 0 || !named[length]) return NULL;
    for (const char *part = named + length - 1; *part; part += strcspn(part, "/")) {
        size_t size = strcspn(++part, "/");
        if (size == 0 || (part[0] == '.' && (size == 1 || (size == 2 && part[1] == '.')))) return NULL;
    }
    if (asprintf(&folder, "%s/%s", command->rest, named + length) < 0) _exit(exit_memory);
    return folder;
}

static const Command *command_of(char **arguments) {
    for (Command *command = commands; command < commands + command_count; command++)
        if (inlet_host_matches((const char *const *)command->words, command->place, (const char *const *)arguments))
            return command;
    return NULL;
}

bool read_order(Message *message, Order *order) {
    bool is_whole = true;
    char *named = NULL;
    *order = (Order){.arguments = take_list(message, &is_whole)};
    const Command *command = allows_everything ? NULL : command_of(order->arguments);
    take_environment(message, command, order, &named, &is_whole);
    order->niceness = take_number(message, &is_whole);
    order->largest = take_number(message, &is_whole);
    order->yields = take_number(message, &is_whole);
    const char *base = take(message, &is_whole), *folder = take(message, &is_whole);
    if (!is_whole || !order->arguments[0] || (!command && !allows_everything)) return errno = EPERM, false;
    order->program = find_program(command ? command->words[0] : order->arguments[0]);
    order->arguments[0] = (char *)order->program;
    if (!command || !command->is_held) {
        order->base = base;
        order->folder = *folder && !command ? need(strdup(folder)) : NULL;
        return true;
    }
    order->base = command->base;
    order->folder = folder_below(command, named);
    return order->folder ? true : (errno = EPERM, false);
}

void release_order(Order *order) {
    for (char **text = order->environment; *text; text++) free(*text);
    free(order->environment);
    free(order->arguments);
    free((char *)order->program);
    free(order->folder);
}

/* The kernel ends it before all others when memory runs short (proc(5)). Without `/proc` that is skipped. */
static void yield_memory(void) {
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    (void)!write(file, "1000", 4);
    close(file);
}

/* In the new process: becomes the program. Comes back with the call that failed. */
static const char *become(const Order *order, const int files[2]) {
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Its own group, and no controlling terminal of our starter, into which it could type. */
    setsid();
    if (order->yields == 1) yield_memory();
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(files[0], 0) < 0 || dup2(nowhere, 1) < 0 || dup2(files[1], 2) < 0) return "dup2";
    if (order->folder) {
        if (hold_writes(order->folder, order->base) != 0) return "landlock_restrict_self";
        /* Where the kernel does not allow it, only the folder restricts it. */
        inlet_filter_calls(0);
    }
    inlet_restrain(0, (int)order->niceness, order->largest);
    execve(order->program, order->arguments, order->environment);
    return "execve";
}

/* Does not wait for the program's start: a disk that does not answer must hold up nothing else. */
pid_t start_program(const Order *order, const int files[2], int *told, const char **call) {
    int ends[2];
    *call = "pipe";
    if (files[0] < 0 || files[1] < 0) return errno = EBADMSG, -1;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    *call = "fork";
    pid_t process = fork();
    if (process == 0) {
        Failure failure = {.call = become(order, files)};
        failure.code = errno;
        (void)!write(ends[1], &failure, sizeof failure);
        _exit(127);
    }
    int code = errno;
    close(ends[1]);
    if (process > 0) *told = ends[0];
    else close(ends[0]);
    return errno = code, process;
}
