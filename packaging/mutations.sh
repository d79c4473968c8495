#!/usr/bin/env bash
# Breaks promises one at a time and sees the test of each fail: packaging/mutations.sh [id…], by packaging/mutations.toml. All
# mutations are compiled into one debug build of a copy of the tree, below .build/mutations, and switched on at run time.
# Prints one line a mutation; exits 1 when one survives, or does not end as a failed expectation.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages "${TEST_PACKAGES[@]}"
exec python3 -B packaging/mutations.py "$@"
