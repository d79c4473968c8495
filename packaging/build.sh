#!/usr/bin/env bash
# Installs what is missing, builds the release and prints its path. Swift's libraries are linked in.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages
build_release
release_binary
