#!/usr/bin/env bash
# The documentation of the modules as web pages: one folder a module below FOLDER (default .build/docs). A link to a type
# that is gone is an error. (Some enums of ours are not in the compiler's symbol graphs: the pages do not link to them.)
#     packaging/docs.sh [FOLDER]
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages
target="${1:-.build/docs}"
graphs="$(mktemp -d)"
trap 'rm -rf -- "$graphs"' EXIT

build_tests
built="$PWD/$TESTS_BUILD/debug"
# What of the package's own C modules and dependencies the compiler must find to read a module again.
mapfile -t maps < <(find -H "$PWD/Sources" "$built" "$PWD/$TESTS_BUILD/checkouts" -name module.modulemap -not -path '*.build/include/*')
flags=()
for map in "${maps[@]}"; do flags+=(-Xcc "-fmodule-map-file=$map"); done

mkdir -p -- "$target"
for catalog in Sources/*/*.docc; do
    module="$(basename -- "$catalog" .docc)"
    mkdir -p -- "$graphs/$module"
    swift symbolgraph-extract -module-name "$module" -minimum-access-level package -output-dir "$graphs/$module" \
        -target "$(uname -m)-unknown-linux-gnu" \
        -I "$built/Modules" "${flags[@]}" >&2
    docc convert "$catalog" --fallback-display-name "$module" --fallback-bundle-identifier "inlet.$module" \
        --additional-symbol-graph-dir "$graphs/$module" --output-path "$target/$module" >"$graphs/$module.log" 2>&1 ||
        die 1 "$(cat -- "$graphs/$module.log")"
    ! grep -A 6 "doesn't exist at" "$graphs/$module.log" >&2 || die 1 "$catalog names what is not there"
    say "documented: $target/$module"
done
