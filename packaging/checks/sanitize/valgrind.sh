#!/usr/bin/env bash
# Reads the fuzzer's corpora under valgrind: what Inlet gives to libyaml and libcurl's parser, and what it takes from
# them, byte by byte. Exits 69 where valgrind cannot be had.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../lib.sh"

need_toolchain
need_packages "valgrind command:valgrind"
build=(swift build -c release --scratch-path .build-valgrind --product inlet-fuzz)
INLET_FUZZER=none "${build[@]}" >&2
program="$(INLET_FUZZER=none "${build[@]}" --show-bin-path)/inlet-fuzz"
# valgrind 3.19 cannot read the debug information of this compiler.
strip --strip-debug -o "$program.stripped" "$program"
find Tests/FuzzTests/Corpora -type f -print0 |
    xargs -0 valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --num-callers=40 --suppressions=packaging/checks/sanitize/valgrind.txt "$program.stripped"
