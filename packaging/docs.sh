#!/usr/bin/env bash
# The documentation as web pages below FOLDER (default .build/docs): FOLDER/manual is the manual as plain HTML, without scripts,
# as the Debian package has it; FOLDER/MODULE is the DocC archive of a module, FOLDER/inlet that of the manual.
#     packaging/docs.sh [FOLDER]
# Fails on a broken link or anchor, a link to a type that is gone, a page that is missing or that nothing links to, and a
# sentence in README.md or the manual that texts.sh --long finds.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages "$MARKDOWN_PACKAGE"
target="${1:-.build/docs}"
work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT

build_tests
built="$PWD/$TESTS_BUILD/debug"
failed=0

# The manual; $work/catalog is its catalog with the generated pages and DocC's own links.
rm -rf -- "$target/manual"
"$(markdown_python)" -B packaging/docs/manual.py "$built/inlet" "$target/manual" --catalog "$work/inlet.docc" >&2 || failed=1
packaging/texts.sh --long README.md Sources/inlet/inlet.docc >&2 || failed=1
say "manual: $target/manual/index.html"

# What of the package's own C modules and dependencies the compiler must find to read a module again.
mapfile -t maps < <(find -H "$PWD/Sources" "$built" "$PWD/$TESTS_BUILD/checkouts" -name module.modulemap -not -path '*.build/include/*')
flags=()
for map in "${maps[@]}"; do flags+=(-Xcc "-fmodule-map-file=$map"); done

# archive MODULE CATALOG: its archive. Our comments name the parameters that need words, not all. Some enums of ours are not in the compiler's symbol graphs: no page links to them.
archive() {
    local graphs="$work/graphs/$1" log="$work/$1.log"
    mkdir -p -- "$graphs"
    swift symbolgraph-extract -module-name "$1" -minimum-access-level package -output-dir "$graphs" \
        -target "$(uname -m)-unknown-linux-gnu" -I "$built/Modules" "${flags[@]}" >&2 || return 1
    docc convert "$2" --fallback-display-name "$1" --fallback-bundle-identifier "inlet.$1" \
        --additional-symbol-graph-dir "$graphs" --output-path "$target/$1" --warnings-as-errors \
        --disable-parameters-and-returns-validation >"$log" 2>&1 ||
        { cat -- "$log" >&2 && return 1; }
    ! grep -A 6 "doesn't exist at" "$log" >&2 || { say "$2 names what is not there" && return 1; }
    say "documented: $target/$1"
}

mkdir -p -- "$target"
for catalog in Sources/*/*.docc; do
    module="$(basename -- "$catalog" .docc)"
    [[ $module != inlet ]] || catalog="$work/inlet.docc"
    archive "$module" "$catalog" || failed=1
done
exit "$failed"
