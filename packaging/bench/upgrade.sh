#!/usr/bin/env bash
# Makes a journal with 10,000 open files by the binary of an earlier version: claimed, parked, half uploaded, finishing. The test
# UpgradeTests has the binary of today go on with it.
# Arguments: COMMIT FILE.tar.xz. The commit is checked out and built beside; INLET_BINARY names a binary to take instead.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

(($# == 2)) || die 64 "upgrade.sh COMMIT FILE.tar.xz"
commit="$(git rev-parse --verify --quiet "$1^{commit}")" || die 64 "upgrade.sh: there is no commit '$1'"
if [[ -z ${INLET_BINARY:-} ]]; then
    need_toolchain
    need_packages
    earlier="$(mktemp -d)"
    trap 'git worktree remove --force "$earlier"' EXIT
    git worktree add --detach "$earlier" "$commit" >&2
    swift build --package-path "$earlier" --scratch-path .build/upgrade -c release --product inlet >&2
    INLET_BINARY="$PWD/.build/upgrade/release/inlet"
fi
export INLET_BINARY
python3 -B packaging/bench/upgrade.py "$commit" "$2"
