#!/usr/bin/env bash
# The tests under a sanitizer: sanitize.sh thread|address [argument of `swift test`…]. `thread` finds races, in what runs at
# the same time; `address` finds reads and writes beside what is allocated, uses of what was given back, and leaks, in what
# goes to C and comes from there. Both slow the tests down several times: they belong to a release, not to each change.
# Exits 69 where the toolchain has no such sanitizer.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../lib.sh"

usage() { die 64 "usage: packaging/checks/sanitize/sanitize.sh thread|address [argument of swift test…]"; }
kind="${1:-}"
(($# > 0)) && shift
case $kind in
thread)
    runtime=tsan
    # What waits, wakes and shares. Of the journal those that write at the same time: its models are one thread each.
    suites='^Inlet(Linux|Transfer|Agent)Tests\.|^InletJournalTests\.(Claim|GroupCommit|Outbox|Waiting|Recovery|Registration)Tests'
    export TSAN_OPTIONS="suppressions=$PWD/packaging/checks/sanitize/thread.txt halt_on_error=0 exitcode=66 history_size=4"
    ;;
address)
    runtime=asan
    # What C reads, and what reads strangers' bytes.
    suites='^(Inlet(Config|Linux|Media|Journal|Transfer)|Fuzz)Tests\.'
    export ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=0" LSAN_OPTIONS="suppressions=$PWD/packaging/checks/sanitize/leak.txt"
    ;;
*) usage ;;
esac

need_toolchain
[[ -n $(clang_runtime "$runtime") ]] || die "$EX_UNAVAILABLE" "this toolchain has no $kind sanitizer"
need_packages "${TEST_PACKAGES[@]}"

# Apart from the other builds: every target is instrumented.
common=(--sanitize="$kind" --scratch-path ".build-$kind")
swift build --build-tests "${common[@]}" >&2
(($# > 0)) || set -- --filter "$suites"
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8
exec swift test --skip-build --disable-xctest "${common[@]}" "$@"
