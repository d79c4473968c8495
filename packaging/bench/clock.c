// A wall clock that is INLET_BENCH_CLOCK seconds off, for LD_PRELOAD. Other clocks, and timers, stay as they are: libfaketime
// takes absolute timers of any clock for ones of the wall clock, and Swift's sleeps never end.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t offset;

__attribute__((constructor)) static void begin(void) {
    const char *seconds = getenv("INLET_BENCH_CLOCK");
    offset = seconds ? atoll(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now) != 0;
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset;
    return failed ? -1 : 0;
}

time_t time(time_t *now) {
    struct timespec found = {0};
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec found = {0};
    clock_gettime(CLOCK_REALTIME, &found);
    *now = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    return 0;
}
