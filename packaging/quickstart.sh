#!/usr/bin/env bash
# From a fresh clone to a running demo: installs what is missing, builds inlet, shows it at work. The build is the one for
# development, which takes half as long; packaging/build.sh makes the one to install.
# Arguments go to `inlet demo` (for example --dir DIR).
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages
swift build --product inlet >&2
swift build --product inlet-host >&2
say "built in $SECONDS s"

# Whoever watches ends it. Where nobody does, it ends by itself.
if [[ -t 0 && -t 1 ]]; then exec .build/debug/inlet demo "$@"; fi
.build/debug/inlet demo --once "$@"
say "$SECONDS s in all"
