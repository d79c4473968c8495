#!/usr/bin/env bash
# A fast folder beside a slow store and one that hangs: is the folder as fast as alone, and what do 200 x kill -9 with 10,000
# small and 40 big files to all three leave? Arguments: [KILLS] [--seed N] [--small N] [--big-files N] [--rounds N].
# INLET_BINARY names a binary to take instead of a release build.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench lanes "$@"
