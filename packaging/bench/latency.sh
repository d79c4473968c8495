#!/usr/bin/env bash
# Close of a small file to its first byte at the server. Options: --files N.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench latency "$@"
