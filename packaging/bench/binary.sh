#!/usr/bin/env bash
# What the release binary holds: sizes with and without symbols, sections, symbols by module, libraries that it loads.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

bench binary "$@"
