#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. Arguments go to `swift test` (for example --filter Settler).
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_toolchain
need_packages "libmagic1 library:libmagic.so.1" "bindfs command:bindfs" "libvips-tools command:vips" "exfat-fuse file:/usr/sbin/mount.exfat-fuse" "exfatprogs command:mkfs.exfat" "openssl command:openssl" "sqlite3 command:sqlite3" "python3-venv file:/usr/lib/python3*/ensurepip/__init__.py"
# Before the tests: CommandTests drive the inlet binary of this build.
build_debug
times=("built in $SECONDS s")
# All tests are Swift Testing's; a run of XCTest would only add "Executed 0 tests".
run() { swift test --skip-build --disable-xctest --explicit-target-dependency-import-check error "$@"; }

if (($# > 0)); then
  run "$@"
  exit
fi
# In groups, of which no more than a few tests run at once: those that compute, and those that start servers, agents and
# processes, would starve each other's time bounds on two cores. Whatever no group names runs with the last one, so that no
# test can be left out by its name.
groups=(
  '(Inlet(Core|Config|Media)|Fuzz)Tests' 'Inlet(Linux|Journal|Transfer)Tests' 'Inlet(Sandbox|Pipelines)Tests'
  InletAgentTests InteropTests
)
# An older toolchain does not know it, and runs them all at once.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=16
# Servers and tools that no one here wrote. Without them their tests say that they are skipped, and why.
if place="$(packaging/interop/install.sh)"; then export INLET_INTEROP="$place"; fi
failed=0
# group TITLE ARGUMENT…
group() {
  local begin=$SECONDS
  printf '\n== %s\n' "$1"
  run "${@:2}" || failed=1
  times+=("$1 in $((SECONDS - begin)) s")
}
for group in "${groups[@]}"; do group "$group" --filter "^$group\\."; done
group "all others" --skip "^($(IFS='|'; printf '%s' "${groups[*]}"))\\."
printf '\n== %s s in all: ' "$SECONDS"
printf '%s; ' "${times[@]}"
printf '\n'
exit "$failed"
