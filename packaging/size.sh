#!/usr/bin/env bash
# How big the code is, a line a module: packaging/size.sh [MODULE…]; without names, every module below Sources and their sum.
# Each figure is what one command counts, which is printed below the table. With --names: the types whose names nobody explains.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1:-} == --names ]]; then exec python3 -B packaging/checks/type_names.py; fi

# Over the Swift files below $1.
declare -A counts=(
    [lines]="find \$1 -name '*.swift' -exec cat {} + | wc -l"
    [files]="find \$1 -name '*.swift' | wc -l"
    [types]="find \$1 -name '*.swift' -exec cat {} + | grep -cE '^ *((package|private|fileprivate|final|indirect) )*(struct|enum|class|actor|protocol) [A-Z]'"
    [X+Y]="find \$1 -name '*+*.swift' | wc -l"
    [try?]="find \$1 -name '*.swift' -exec cat {} + | grep -cE 'try[?]|await bestEffort[(]'"
    [closures]="find \$1 -name '*.swift' -exec cat {} + | grep -cE '^ *((package|private|fileprivate|static) )*(let|var) [a-zA-Z]+: (@escaping )?\(?(@Sendable )?\([^)]*\) (async )?(throws(\([A-Za-z]+\))? )?->'"
)
readonly ORDER=(lines files types X+Y try? closures)

# row FOLDER NAME
row() {
    local name values=()
    for name in "${ORDER[@]}"; do values+=("$(bash -c "${counts[$name]}" size "$1" || true)"); done
    printf '%-18s %8s %6s %6s %5s %6s %9s\n' "$2" "${values[@]}"
}

printf '%-18s %8s %6s %6s %5s %6s %9s\n' module "${ORDER[@]}"
if (($#)); then
    for module in "$@"; do row "Sources/$module" "$module"; done
else
    for folder in Sources/*/; do
        [[ -z $(find "$folder" -name '*.swift' -print -quit) ]] || row "$folder" "$(basename -- "$folder")"
    done
    row Sources all
fi
for name in "${ORDER[@]}"; do printf '\n%s: %s' "$name" "${counts[$name]//\$1/FOLDER}"; done
printf '\n'
