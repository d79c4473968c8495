#!/usr/bin/env bash
# kill -9 at random moments while a folder fills; is everything stored, once and whole? Arguments: [CYCLES] [--seed N].
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench kill9 "$@"
