#!/usr/bin/env bash
# Calls on files fail, and writers edit, replace, exchange, lock away and unmount what is being sent: is anything called gone
# that is there, deleted unproved, delivered twice, or well that is not?
# Arguments: [--seed N] [--seeds N] [--count N] [--self-test]. As root also with file systems that are mounted meanwhile. Takes
# the debug build, for only that has failpoints; INLET_BINARY names another.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

if [[ -z ${INLET_BINARY:-} ]]; then
    need_toolchain
    need_packages "python3 command:python3" "util-linux command:prlimit"
    swift build --product inlet >&2
    INLET_BINARY="$(swift build --show-bin-path)/inlet"
fi
bench faults "$@"
