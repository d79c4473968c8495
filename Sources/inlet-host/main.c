#include <CHost.h>
#include <stdio.h>

/* Its part begins before this: see `take_role`. Whoever starts it by hand learns what it is. */
int main(void) {
    fputs("inlet-host is a part of inlet, which starts it. Run 'inlet --help' instead.\n", stderr);
    /* sysexits.h: a wrong command line. */
    return 64;
}
