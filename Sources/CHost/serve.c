#include "host.h"

#include "confinement.h"
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

/* A process that was started, until the agent has heard its end. */
typedef struct Child {
    struct Child *next;
    char *number, *program;
    pid_t process;
    /* Its `Failure`; -1 for the reader. */
    int told;
    bool has_ended;
    /* The agent waits for it no more. */
    bool is_left;
} Child;

static Child *children;

/* Seconds that programs have to end when the agent ends, after SIGTERM and after SIGKILL. */
static const int grace = 5;

static void add_child(const char *number, const char *program, pid_t process, int told, bool is_left) {
    Child *child = need(malloc(sizeof *child));
    *child = (Child){children, need(strdup(number)), need(strdup(program)), process, told, false, is_left};
    children = child;
}

static Child *child_of(const char *number) {
    Child *child = children;
    while (child && strcmp(child->number, number) != 0) child = child->next;
    return child;
}

/* To its group, and to the child itself, which may be in another group by now. */
static void end_child(const Child *child, int number) {
    bool is_told = kill(-child->process, number) == 0;
    if (!is_told || number == SIGKILL) kill(child->process, number);
}

/* The group's number is not used again before that. */
static void reap(const Child *child, bool kills_group) {
    if (kills_group) kill(-child->process, SIGKILL);
    waitpid(child->process, NULL, 0);
}

static void forget(Child *child) {
    for (Child **place = &children; *place; place = &(*place)->next)
        if (*place == child) {
            *place = child->next;
            break;
        }
    if (child->told >= 0) close(child->told);
    free(child->number);
    free(child->program);
    free(child);
}

static void collect(Child *child, bool kills_group) {
    reap(child, kills_group);
    forget(child);
}

static void tell(const char *number, const char *call, const char *path, int code) {
    Answer answer = begin_answer();
    add_text(&answer, number);
    add_text(&answer, call ? "failed" : "started");
    if (call) {
        add_text(&answer, call);
        add_text(&answer, path);
        add_number(&answer, code);
    }
    send_answer(0, &answer);
}

static void tell_end(const Child *child, const siginfo_t *info) {
    Answer answer = begin_answer();
    add_text(&answer, child->number);
    add_text(&answer, "ended");
    add_text(&answer, info->si_code == CLD_EXITED ? "exited" : "signalled");
    add_number(&answer, info->si_status);
    send_answer(0, &answer);
}

/* Whether it never became its program; nobody waits for it then. Its process is gone before the agent hears of it. */
static bool tell_failure(Child *child) {
    Failure failure;
    if (child->told < 0 || read(child->told, &failure, sizeof failure) != sizeof failure) return false;
    reap(child, true);
    tell(child->number, failure.call, child->program, failure.code);
    forget(child);
    return true;
}

/* Those that have ended stay to be collected until the agent says so, or at once where it waits no more. */
static void notice_ends(void) {
    for (Child *child = children, *next; child; child = next) {
        siginfo_t info = {0};
        next = child->next;
        if (child->has_ended || waitid(P_PID, (id_t)child->process, &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
        if (info.si_pid != child->process) continue;
        child->has_ended = true;
        if (child->is_left) collect(child, true);
        else if (!tell_failure(child)) tell_end(child, &info);
    }
}

static void run(Message *message) {
    bool is_whole = true;
    const char *number = take(message, &is_whole), *call = INLET_HOST_ROLE;
    Order order;
    pid_t process = -1;
    int told = -1;
    bool is_allowed = read_order(message, &order);
    if (is_allowed) process = start_program(&order, message->files, &told, &call);
    int code = errno;
    if (process > 0) add_child(number, order.program, process, told, false);
    tell(number, process > 0 ? NULL : call, is_allowed ? order.program : "", code);
    release_order(&order);
}

/* Starts the confined reader of strangers' files, with which the agent then speaks itself. */
static void start_reader(Message *message) {
    bool is_whole = true;
    const char *number = take(message, &is_whole);
    pid_t process = message->files[0] < 0 ? -1 : fork();
    if (process == 0) read_files(message->files[0]);
    if (process > 0) add_child("", "", process, -1, true);
    tell(number, process > 0 ? NULL : "fork", "", errno);
}

static void end_program(Message *message) {
    bool is_whole = true;
    Child *child = child_of(take(message, &is_whole));
    bool kills_group = take_number(message, &is_whole) == 1;
    if (!child) return;
    child->is_left = true;
    if (child->has_ended) collect(child, kills_group);
}

static void signal_program(Message *message) {
    bool is_whole = true;
    Child *child = child_of(take(message, &is_whole));
    long long number = take_number(message, &is_whole);
    if (child && (number == SIGTERM || number == SIGKILL)) end_child(child, (int)number);
}

static void handle(Message *message) {
    bool is_whole = true;
    const char *kind = take(message, &is_whole);
    if (strcmp(kind, "run") == 0) run(message);
    else if (strcmp(kind, "signal") == 0) signal_program(message);
    else if (strcmp(kind, "end") == 0) end_program(message);
    else if (strcmp(kind, "holders") == 0) answer_holders(0, message);
    else if (strcmp(kind, "users") == 0) answer_users(0, message);
    else if (strcmp(kind, "reader") == 0) start_reader(message);
    else if (strcmp(kind, "commands") == 0) hear_commands(message);
    else if (strcmp(kind, "everything") == 0) allow_everything();
}

/* Of a clock that nobody sets. */
static time_t seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* Waits for all children's ends, for `grace` at most. */
static void await_ends(struct pollfd *ending) {
    time_t until = seconds() + grace;
    for (Child *child = children; child; child = child->next) child->is_left = true;
    for (Child *child = children, *next; child; child = next) {
        next = child->next;
        if (child->has_ended) collect(child, true);
    }
    for (notice_ends(); children && seconds() < until; notice_ends()) {
        struct signalfd_siginfo info;
        if (poll(ending, 1, 1000) == 1) (void)!read(ending->fd, &info, sizeof info);
    }
}

static void end_children(struct pollfd *ending) {
    for (Child *child = children; child; child = child->next) end_child(child, SIGTERM);
    await_ends(ending);
    for (Child *child = children; child; child = child->next) end_child(child, SIGKILL);
    await_ends(ending);
}

static void greet(void) {
    Answer answer = begin_answer();
    add_text(&answer, INLET_HOST_ROLE);
    add_number(&answer, inlet_host_version);
    send_answer(0, &answer);
}

/* Answers until the agent ends, and then ends its programs. */
static _Noreturn void serve(void) {
    sigset_t all, ends;
    sigfillset(&all);
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    /* It ends when the agent does, even where a terminal or a service manager signals both. A new process inherits
       the mask, so that a signal before its program starts is not lost. */
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "inlet-host");
    /* It uses the agent's capabilities to look at other processes, and passes none on. */
    inlet_keep_capabilities();
    struct pollfd events[] = {
        {.fd = 0, .events = POLLIN},
        {.fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN},
    };
    greet();
    for (Message message;;) {
        struct signalfd_siginfo info;
        if (poll(events, 2, -1) < 0 && errno != EINTR) break;
        while (read(events[1].fd, &info, sizeof info) > 0) continue;
        notice_ends();
        if (events[0].revents == 0) continue;
        if (!receive(0, &message)) break;
        handle(&message);
        release(&message);
    }
    end_children(&events[1]);
    _exit(0);
}

/* Takes the part before `main`, in every program that has this code: there nothing of Swift has begun yet. */
__attribute__((constructor)) static void take_role(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], INLET_HOST_ROLE) == 0) serve();
}
