/* Answers of which type a content is, by libmagic (file(1)). The library reads bytes that strangers wrote, so it does
   that in a process of its own that has given up everything else. It is found at run time: neither its header nor the
   library is needed where no route asks what a file holds. The calls and numbers are those of magic.h, the same since
   file 5.0. */
#include "host.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/time.h>

/* MAGIC_MIME_TYPE, and MAGIC_NO_CHECK_COMPRESS: nothing is unpacked. */
static const int magic_flags = 0x10 | 0x1000;
/* Seconds for one answer, then SIGALRM ends it; milliseconds without a question, then it ends and gives its
   memory back: a new one has loaded the library after ten. */
enum { answer_seconds = 30, idle_milliseconds = 5000 };

typedef struct {
    void *cookie;
    const char *(*buffer)(void *, const void *, size_t);
    const char *(*error)(void *);
} Magic;

/* Loads the library and its database. NULL, or why that failed. */
static const char *load(Magic *magic) {
    void *library = dlopen("libmagic.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    void *(*open_magic)(int) = (void *(*)(int))dlsym(library, "magic_open");
    int (*load_magic)(void *, const char *) = (int (*)(void *, const char *))dlsym(library, "magic_load");
    magic->error = (const char *(*)(void *))dlsym(library, "magic_error");
    magic->buffer = (const char *(*)(void *, const void *, size_t))dlsym(library, "magic_buffer");
    if (!open_magic || !load_magic || !magic->error || !magic->buffer) return "libmagic.so.1 lacks a call";
    magic->cookie = open_magic(magic_flags);
    if (!magic->cookie) return "magic_open failed";
    if (load_magic(magic->cookie, NULL) != 0) return "its database (magic.mgc) cannot be loaded";
    return NULL;
}

/* The type of what begins with these bytes, or why there is none. */
static void add_type(Answer *answer, const Magic *magic, const char *bytes, size_t size) {
    struct itimerval time = {.it_value.tv_sec = answer_seconds}, none = {0};
    setitimer(ITIMER_REAL, &time, NULL);
    const char *type = magic->buffer(magic->cookie, bytes, size);
    const char *why = type ? NULL : magic->error(magic->cookie);
    setitimer(ITIMER_REAL, &none, NULL);
    add_text(answer, type ? "type" : "unavailable");
    add_text(answer, type ? type : why ? why : "libmagic gave no answer");
}

void read_files(int socket) {
    Magic magic;
    Message message;
    struct pollfd question = {.fd = 0, .events = POLLIN};
    prctl(PR_SET_NAME, "inlet-reader");
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(socket, 0) < 0) _exit(1);
    const char *why = load(&magic);
    /* Of the few descriptors, those of the library too, only the conversation is left. */
    for (int other = 1; other < 256; other++) close(other);
    if (!why && hold_everything() != 0) why = "its reader cannot be confined";
    while (poll(&question, 1, idle_milliseconds) == 1 && receive(0, &message)) {
        bool is_whole = true;
        const char *bytes = take(&message, &is_whole);
        if (!is_whole) break;
        Answer answer = begin_answer();
        add_text(&answer, "0");
        if (!why) {
            add_type(&answer, &magic, bytes, message.sizes[0]);
        } else {
            add_text(&answer, "unavailable");
            add_text(&answer, why);
        }
        /* Without the library another one is started for the next question: somebody may have installed it. */
        if (!send_answer(0, &answer) || why) break;
        release(&message);
    }
    _exit(0);
}
