#!/usr/bin/env bash
# What inlet costs while nothing happens. Arguments: [SECONDS] [--directories N].
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench idle "$@"
