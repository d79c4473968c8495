#!/usr/bin/env bash
# kill -9 at random moments while a folder fills; is everything stored everywhere, once and whole?
# Arguments: [CYCLES] [--seed N] [--sandbox-binary FILE] [--self-test]. INLET_BINARY names a binary to take instead of a
# release build; both it and the sandbox's need the command `inlet sandbox`.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench crash "$@"
