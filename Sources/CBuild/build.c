#include "CBuild.h"

#ifndef INLET_COMMIT
#define INLET_COMMIT ""
#endif

const char *inlet_build_commit(void) { return INLET_COMMIT; }
