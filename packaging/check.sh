#!/usr/bin/env bash
# Format, layering, house rules, the benches' own tests, a build that checks declared dependencies, the modules' pages and
# the man pages made of it, the dashboard in a browser, and the API against its document. --quick leaves out what needs the
# build or takes long; --full also feeds each reader of strangers' bytes for a minute, reads their corpora under valgrind,
# runs all tests in their full size and under the thread, address and leak sanitizers, sees every mutation fail its test, and
# makes the release build: hours on two cores.
# Prints one line a check; exits 1 when any failed.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

quick=false full=false
case "${1:-}" in
"") ;;
--quick) quick=true ;;
--full) full=true ;;
*) die 64 "usage: check.sh [--quick|--full]" ;;
esac

need_toolchain
need_packages "python3 command:python3"

# What `swift format` checks is named, so that a folder that vanished is an error and not "clean".
formatted() { swift format lint --strict --recursive --configuration .swift-format Sources Tests Package.swift; }

shell_scripts() {
    local linter=(-n 1 bash -n)
    ! command -v shellcheck >/dev/null || linter=(shellcheck -x -P packaging -P packaging/bench -P packaging/checks/api)
    find packaging .ci -type f \( -name '*.sh' -o -path .ci/run \) -print0 | xargs -0 "${linter[@]}"
}

python_scripts() {
    # compile(), not py_compile: no cache beside the sources.
    find packaging -name '*.py' -print0 |
        xargs -0 python3 -c 'import sys; [compile(open(name).read(), name, "exec") for name in sys.argv[1:]]'
}

# As the modules that they are; the one that is none, theme.js, would do as one.
page_scripts() {
    local file ended=0
    for file in Sources/InletWeb/page/*.js; do
        node --check --input-type=module - <"$file" || { echo "in $file" && ended=1; }
    done
    return "$ended"
}

# What is shipped for Prometheus and Grafana. The tests hold its names against the program, and a page through promtool.
metrics_files() {
    python3 -m json.tool packaging/grafana/inlet.json /dev/null || return 1
    if command -v promtool >/dev/null; then
        promtool check rules packaging/prometheus/alerts.yml && promtool test rules packaging/prometheus/alerts_test.yml
    fi
}

# What they say comes from the program, so that it is enough to have them made and looked at.
man_pages() { python3 -B packaging/docs/pages.py "$TESTS_BUILD/debug/inlet" .build/man --lint; }

# In tenths: 30 is "3.0". What verify says needs the program installed: packaging/deb/test.sh asks it.
unit_exposure() { systemd-analyze security --offline=true --no-pager --threshold=30 packaging/systemd/inlet.service; }

page() { INLET_BINARY="$REPO_ROOT/$TESTS_BUILD/debug/inlet" packaging/browser/browser.sh; }
api() { INLET_BINARY="$REPO_ROOT/$TESTS_BUILD/debug/inlet" packaging/checks/api/schemathesis.sh; }

# Of what cannot be tried here nobody says that it is well.
left() { printf 'left  %s\n' "$1"; }

check "swift format lint --strict" formatted
check "shell scripts ($(command -v shellcheck >/dev/null && echo shellcheck || echo 'bash -n; shellcheck is not installed'))" shell_scripts
check "Python scripts compile" python_scripts
if command -v node >/dev/null; then
    check "the page's scripts parse" page_scripts
else
    left "whether the page's scripts parse: there is no node"
fi
check "dashboard and alerts ($(command -v promtool >/dev/null && echo promtool || echo 'JSON only; promtool is not installed'))" metrics_files

# sources.py prints lines of the same form, one for each of its checks.
if rules="$(python3 -B packaging/checks/sources.py 2>&1)"; then sources_ended=0; else sources_ended=$?; fi
printf '%s\n' "$rules"
passed=$((passed + $(grep -c '^ok ' <<<"$rules" || true)))
broken="$(grep -c '^FAIL ' <<<"$rules" || true)"
# It ended badly without naming a rule: it did not run to its end.
if ((sources_ended != 0 && broken == 0)); then broken=1; fi
failed=$((failed + broken))

check "Unraid's template is the container of compose.yaml" python3 -B packaging/checks/nas_template.py
if command -v systemd-analyze >/dev/null; then
    check "systemd-analyze security is 3 at most" unit_exposure
else
    left "what systemd says of the unit: there is no systemd-analyze"
fi
check "every row of Tests/CHECKLIST.tsv is answered by tests that exist" python3 -B packaging/checks/checklist.py
check "the checks' own rules, on what is right and on what is wrong" python3 -B packaging/checks/self_test.py
check "texts that people meet are short, and what a person would say" packaging/texts.sh --long
check "bench/bench_test.py: what judges a run" python3 -B packaging/bench/bench_test.py
if python3 -c 'import tomllib' 2>/dev/null; then
    check "every mutation has its place and its test" python3 -B packaging/checks/mutations.py --check
else
    left "the table of mutations: that needs Python 3.11 or newer"
fi
$quick || check "builds, and every import is a declared dependency" build_tests
$quick || check "the modules' documentation links to what is there" packaging/docs.sh .build/docs
$quick || check "every command is explained, and man pages are made of that" man_pages
$quick || command -v groff >/dev/null || command -v mandoc >/dev/null || left "the man pages' marks: there is no groff"

# optional TITLE COMMAND…: a check that says by its exit code that it cannot be made here.
optional() {
    local title=$1 seen ended=0 begin=$SECONDS
    shift
    seen="$("$@" 2>&1)" || ended=$?
    if ((ended == EX_UNAVAILABLE)); then
        left "$title: $(tail -n 1 <<<"$seen")"
    else
        # Not `output`: that is a local of check's, which what it calls sees.
        as_seen() { printf '%s\n' "$seen" && return "$ended"; }
        check "$title ($((SECONDS - begin)) s)" as_seen
    fi
}

$quick || optional "the page in a browser, against a running agent" page
$quick || optional "the API against its document, with schemathesis" api
! $full || optional "the readers of strangers' bytes, fuzzed for a minute each" packaging/bench/fuzz.sh 60
! $full || optional "the readers' corpora under valgrind" packaging/checks/sanitize/valgrind.sh
! $full || optional "the tests under the thread sanitizer" packaging/checks/sanitize/sanitize.sh thread
! $full || optional "the tests under the address and leak sanitizers" packaging/checks/sanitize/sanitize.sh address
! $full || check "all tests, in their full size" packaging/test.sh --full
! $full || optional "every mutation fails its test" packaging/mutations.sh
! $full || check "the release build compiles" build_release

tally
