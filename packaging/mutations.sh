#!/usr/bin/env bash
# Breaks promises one at a time and sees the test of each fail: packaging/mutations.sh [id…], by packaging/mutations.toml. All
# mutations are compiled into one debug build of a copy of the tree, below .build/mutations, and switched on at run time.
# Prints one line a mutation; exits 1 when one survives, or does not end as a failed expectation.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages "${TEST_PACKAGES[@]}"
python3 -c 'import tomllib' 2>/dev/null || die $EX_UNAVAILABLE "the mutations are not tried: that needs Python 3.11 or newer"
exec python3 -B packaging/checks/mutations.py "$@"
