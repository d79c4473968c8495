#!/usr/bin/env bash
# Bandwidth limits: how well a rate is held by 64 connections over 10 s, changed at run time, and how long small files
# wait beside big ones. Options: --rates R,R,…, --files N.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

need_packages "gcc command:cc" "libssl-dev file:/usr/include/openssl/ssl.h"
bench bandwidth "$@"
