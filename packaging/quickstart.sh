#!/usr/bin/env bash
# From a fresh clone to a running demo: installs what is missing, builds inlet, shows it at work.
# Arguments go to `inlet demo` (for example --dir DIR).
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages
build_release
binary="$(release_binary)"

once=()
# Nobody would be there to end a demo that keeps watching.
[[ -t 0 && -t 1 ]] || once=(--once)
exec "$binary" demo "${once[@]}" "$@"
