#!/usr/bin/env bash
# Every text that a person can meet, with its place: one line a text, `FILE:LINE: KIND: TEXT`.
#     packaging/texts.sh [--long] [--kind KIND]… [FILE|FOLDER]…
# --long prints what breaks the manner of our sentences instead: more than 30 words, or a phrase that nobody would say. The
# last line counts the sentences and their words. Kinds: message, page, comment, manual, example. Exits 1 when --long finds one.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
exec python3 -B packaging/checks/texts.py "$@"
