#!/usr/bin/env bash
# 2 GiB through R2 multipart against curl -T: speed, CPU, memory. Options: --rounds N, --gib N.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench throughput "$@"
