#!/usr/bin/env bash
# 6 GiB through GigHive's form and through tus, against curl -F: speed and memory. Options: --rounds N, --gib N, --once, --report.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "gcc command:cc"
bench gighive "$@"
