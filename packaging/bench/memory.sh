#!/usr/bin/env bash
# Peak RSS with a 6 GiB file, and with 10,000 small files waiting. Options: --gib N, --files N, --verify size|md5.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench memory "$@"
