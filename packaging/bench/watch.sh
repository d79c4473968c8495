#!/usr/bin/env bash
# What watching finds, how fast, and what it costs, beside inotifywait, watchman and lsyncd where they are installed.
# Options: --big (a million files), --only PART,…, --files N, --directories N, --runs N, --no-peers, --json FILE.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench watch "$@"
