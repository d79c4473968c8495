#!/usr/bin/env bash
# Asks a running agent thousands of questions made from its OpenAPI document, right ones and wrong ones:
# ./packaging/checks/api/schemathesis.sh [QUESTIONS-PER-OPERATION]. Uses the binary that INLET_BINARY names, or builds the release.
# Exits 69 with the reason where schemathesis cannot be had.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../lib.sh"

need_packages "python3 command:python3" "python3-venv file:/usr/lib/python3*/ensurepip"
place="$(python_packages api packaging/checks/api/requirements.txt)" ||
    die "$EX_UNAVAILABLE" "the API is not tested against its document: schemathesis is not there"
need_binary
exec "$place/bin/python" -B packaging/checks/api/run.py "$@"
