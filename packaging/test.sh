#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test: in groups side by side, and says what failed. What is heavy on
# the machine does a tenth of its work, and all of it with --full. Other arguments are those of a test bundle: --filter Settler
# runs the tests of that name, --skip all but those.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages "${TEST_PACKAGES[@]}"
# Before the tests: CommandTests drive the inlet binary of this build.
build_tests
# Servers and tools that no one here wrote. Without them their tests say that they are skipped, and why.
if place="$(python_packages interop packaging/checks/interop/requirements.txt)"; then export INLET_INTEROP="$place"; fi
built=$SECONDS

if [[ ${1:-} == --full ]]; then
    export INLET_TESTS=full
    shift
fi
# So many of each lane at once: tests that compute, and those that start servers, agents and processes, would starve each other.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8
bundle="$TESTS_BUILD/debug/InletPackageTests.xctest"
ended=0
python3 -B packaging/checks/run_tests.py "$bundle" "$@" || ended=$?
printf '%s s in all, of which %s s to build and to install\n' "$SECONDS" "$built"
exit "$ended"
