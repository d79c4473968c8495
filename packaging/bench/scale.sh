#!/usr/bin/env bash
# A million queued and a million finished jobs: start, status, claims; throughput with 1 to 64 workers and parts; the
# binary's size. Options: --only start|status|history|claims|workers|parts|size (again for several), --rows N,
# --rounds N, --mib N (of the big files), --report.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "gcc command:cc" "libssl-dev file:/usr/include/openssl/ssl.h"
bench scale "$@"
