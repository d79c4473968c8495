#!/usr/bin/env bash
# Installs the servers and tools of InteropTests into a virtual environment and prints its path. Exits 69 with the reason where
# that is not possible. Run again, it is done at once.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../lib.sh"

command -v python3 >/dev/null || die "$EX_UNAVAILABLE" "InteropTests are skipped: python3 is not installed"
python_packages interop packaging/checks/interop/requirements.txt || die "$EX_UNAVAILABLE" "InteropTests are skipped"
