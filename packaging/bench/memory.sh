#!/usr/bin/env bash
# Peak memory with a 6 GiB file, and with 10,000 small files waiting; once more without giving back code. Options: --gib N,
# --files N, --verify size|md5, --once, --report.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "gcc command:cc"
bench memory "$@"
