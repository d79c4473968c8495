#!/usr/bin/env bash
# Files come without end, and servers fail now and then: do memory, descriptors and threads stay flat?
# Arguments: [MINUTES] [--seed N] [--trouble SHARE] [--self-test].
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench soak "$@"
