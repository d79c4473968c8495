#pragma once

/// The commit that this build was made of and its day, as in `ca79110, 2026-11-22`; empty where the build was not told.
const char *inlet_build_commit(void);
