#!/usr/bin/env bash
# Asks a running agent thousands of questions made from its OpenAPI document, right ones and wrong ones:
# ./packaging/api/schemathesis.sh [QUESTIONS-PER-OPERATION]. Uses the binary that INLET_BINARY names, or builds the
# release. Exits 69 with the reason where schemathesis cannot be had.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

readonly REQUIREMENTS=packaging/api/requirements.txt
readonly PLACE="$REPO_ROOT/.build/api"

missing() { die $EX_UNAVAILABLE "the API is not tested against its document: $1"; }

need_packages "python3 command:python3" "python3-venv file:/usr/lib/python3*/ensurepip"
if ! cmp -s "$REQUIREMENTS" "$PLACE/requirements.txt"; then
    rm -rf "$PLACE"
    log="$(python3 -m venv "$PLACE" 2>&1)" || missing "python3 -m venv does not work
$log"
    log="$("$PLACE/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 -r "$REQUIREMENTS" 2>&1)" ||
        missing "PyPI cannot be reached, or does not have schemathesis for this Python (3.10 or newer)
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
exec "$PLACE/bin/python" -B packaging/api/run.py "$@"
