#!/usr/bin/env bash
# Tests the dashboard in a real browser, headless, against a running agent: ./packaging/browser/browser.sh [FOLDER]
# FOLDER gets a picture of each page; `--portrait .github/dashboard.png` only takes the README's picture. Uses the
# binary that INLET_BINARY names, or builds the release. Exits 69 with the reason where a browser or selenium cannot be
# had.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

readonly REQUIREMENTS=packaging/browser/requirements.txt
readonly PLACE="$REPO_ROOT/.build/browser"

missing() { die $EX_UNAVAILABLE "the dashboard is not tested: $1"; }

need_packages "chromium command:chromium" "chromium-driver command:chromedriver" "python3 command:python3" \
    "python3-venv file:/usr/lib/python3*/ensurepip"
if ! cmp -s "$REQUIREMENTS" "$PLACE/requirements.txt"; then
    rm -rf "$PLACE"
    log="$(python3 -m venv "$PLACE" 2>&1)" || missing "python3 -m venv does not work
$log"
    log="$("$PLACE/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 -r "$REQUIREMENTS" 2>&1)" ||
        missing "PyPI cannot be reached, or does not have selenium
$(tail -n 3 <<<"$log")"
    # Last: what says that all is there.
    cp "$REQUIREMENTS" "$PLACE/requirements.txt"
fi
if [[ -z ${INLET_BINARY:-} ]]; then
    need_toolchain
    build_release
    INLET_BINARY="$(release_binary)"
fi
export INLET_BINARY
if [[ ${1:-} == --portrait ]]; then
    exec "$PLACE/bin/python" -B packaging/browser/portrait.py "${2:?a file for the picture}"
fi
exec "$PLACE/bin/python" -B packaging/browser/browser.py "$@"
