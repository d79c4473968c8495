#!/usr/bin/env bash
# Feeds the readers of strangers' bytes with libFuzzer and the address sanitizer, each for SECONDS: fuzz.sh SECONDS
# [READER…] [--jobs N]. What breaks one is kept in Tests/FuzzTests/Corpora, where the tests read it from then on; what was
# found on the way stays in .build-fuzz and is gone on with. Exits 69 where the toolchain has no libFuzzer.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_toolchain
need_packages "python3 command:python3"
toolchain="$(dirname -- "$(readlink -f -- "$(command -v swiftc)")")/.."
runtime="$(find "$toolchain/lib/clang" -name "libclang_rt.fuzzer_no_main-$(uname -m).a" -print -quit 2>/dev/null || true)"
[[ -n $runtime ]] || die $EX_UNAVAILABLE "this toolchain has no libFuzzer (libclang_rt.fuzzer_no_main-$(uname -m).a)"

# Apart from the other builds: every target of ours is instrumented. Optimized, because what counts is how often a reader runs;
# Swift's own checks of bounds and overflow stay.
build=(swift build -c release --scratch-path .build-fuzz --product inlet-fuzz)
INLET_FUZZER="$runtime" "${build[@]}" >&2
INLET_FUZZ="$(INLET_FUZZER="$runtime" "${build[@]}" --show-bin-path)/inlet-fuzz"
export INLET_FUZZ
exec python3 -B packaging/bench/fuzz.py "$@"
