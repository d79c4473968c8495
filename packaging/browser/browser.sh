#!/usr/bin/env bash
# Tests the dashboard and the manual in a real browser, headless, against a running agent: ./packaging/browser/browser.sh [FOLDER]
# FOLDER gets a picture of each page; `--portrait .github/dashboard.png .github/terminal.png` only takes the README's pictures,
# and `--portrait-cards .github`, as root, the README's pictures of cards.
# Uses the binary that INLET_BINARY names, or builds the release. Exits 69 with the reason where a browser or selenium cannot be had.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "chromium command:chromium" "chromium-driver command:chromedriver" "python3 command:python3" \
    "python3-venv file:/usr/lib/python3*/ensurepip" "$MARKDOWN_PACKAGE"
place="$(python_packages browser packaging/browser/requirements.txt)" ||
    die "$EX_UNAVAILABLE" "the dashboard is not tested: selenium is not there"
need_binary
if [[ ${1:-} == --portrait ]]; then
    exec "$place/bin/python" -B packaging/browser/portrait.py "${2:?a file for the picture}" "${@:3}"
fi
if [[ ${1:-} == --portrait-cards ]]; then
    exec "$place/bin/python" -B packaging/browser/portrait_cards.py "${2:?a folder for the pictures}"
fi
# As a package installs them: the program finds the manual beside its own folder.
installed="$REPO_ROOT/.build/browser-installed"
rm -rf -- "$installed"
install -D -t "$installed/bin" -- "$INLET_BINARY" "$(dirname -- "$INLET_BINARY")/inlet-host"
"$(markdown_python)" -B packaging/docs/manual.py "$INLET_BINARY" "$installed/share/inlet/manual"
export INLET_BINARY="$installed/bin/inlet" INLET_MANUAL="$installed/share/inlet/manual"
# What docs.sh has made of the catalog, where it has run.
if [[ -d .build/docs/inlet ]]; then export INLET_ARCHIVE="$REPO_ROOT/.build/docs/inlet"; fi
exec "$place/bin/python" -B packaging/browser/browser.py "$@"
