#!/usr/bin/env bash
# Tries the image without Docker: the last stage of the Dockerfile is carried out in a debootstrap tree, and its entrypoint
# run there with the capabilities of compose.yaml, as process 1, on a read-only tree. Needs root and a Debian mirror.
# test.sh [FILE.deb]; without one it is built. Not shown: the first stage (deb/test.sh tries what it runs), Docker itself.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"
source packaging/deb/tree.sh
try_package packaging/docker/test.sh "$@"
image="$TREES/image.sh"

builds() { python3 -B packaging/docker/stage.py packaging/docker/Dockerfile "$TREE" "$package" >"$image"; }
check "the last stage of the Dockerfile is carried out" builds
((failed == 0)) || { tally && exit; }
env=() volume=() stopsignal=() healthcheck=() entrypoint=() cmd=()
# shellcheck source=/dev/null  # what the image remembers
source "$image"

# cap_add of compose.yaml as setpriv writes it: setuid,+setgid…
capabilities() {
    sed -n '/cap_add:/,/^    [a-z]/s/^ *- \([A-Z]*\).*/+\1/p' packaging/docker/compose.yaml |
        tr '[:upper:]' '[:lower:]' | paste -sd, -
}

# container COMMAND…: process 1 of its own, with the image's environment; WITH holds more, CAPS the capabilities.
WITH=()
CAPS="$(capabilities)"
container() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --mount --pid --fork --kill-child -- sh -c 'mount -t proc proc "$1/proc" && shift && exec "$@"' sh "$TREE" \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${env[@]}" "${WITH[@]}" \
        "INLET_TREE=$TREE" \
        chroot "$TREE" setpriv --bounding-set="-all,$CAPS" --inh-caps=-all --no-new-privs --clear-groups "$@"
}

small() { [[ ! -e $TREE/tmp/inlet.deb && -z $(ls -A "$TREE/var/lib/apt/lists") ]]; }
answers() { [[ " $(container "${entrypoint[@]}" --version) " == *" $(dpkg-deb -f "$package" Version) "* ]]; }
without_configuration() {
    local ended=0 said
    said="$(container "${entrypoint[@]}" "${cmd[@]}" 2>&1)" || ended=$?
    printf '%s\n' "$said"
    [[ $ended == 78 && $said == *"finds no /config/inlet.yaml"* ]]
}
refuses() {
    local ended=0
    WITH=("$1")
    container "${entrypoint[@]}" --version || ended=$?
    ((ended == 78))
}
check "nothing of the installation is left" small
check "a command goes to inlet" answers
# Debian's slim image leaves /usr/share/doc out; the agent serves the manual from here.
check "the manual is there" grep -q '<title>' "$TREE/usr/share/inlet/manual/index.html"
check "without a configuration it says what to do" without_configuration
check "PUID=0 is refused" refuses PUID=0
check "PUID=nobody is refused" refuses PUID=nobody
check "UMASK=rwx is refused" refuses UMASK=rwx
check "UMASK=777, which would lock the user out, is refused" refuses UMASK=777
check "SIGTERM stops it" test "${stopsignal[*]}" = SIGTERM

# --- running, as on a NAS: the files are of user 1031, the configuration is readable by nobody else

make_folders /data /config/inlet.yaml
chown -R 1031:1032 "$TREE/config" "$TREE/data"
chmod 700 "$TREE/config"
# What is no volume is read-only: each volume is a mount of its own.
for folder in "${volume[@]}" /tmp; do mount --bind "$TREE$folder" "$TREE$folder"; done
mount -o remount,ro,bind "$TREE"

log="$TREES/container.log"
begin() {
    WITH=(PUID=1031 PGID=1032 UMASK=002)
    container "${entrypoint[@]}" "${cmd[@]}" >"$log" 2>&1 &
    within 60 healthy || { cat -- "$log" && return 1; }
}
healthy() {
    WITH=(PUID=1031 PGID=1032)
    container "${healthcheck[@]}"
}
unhealthy() { ! healthy; }
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(inlet_process)/status"; }
is_user() { [[ $(status_of Uid) == $'1031\t1031\t1031\t1031' && $(status_of Gid) == $'1032\t1032\t1032\t1032' ]]; }
# 28: CAP_LEASE, and nothing else.
has() { [[ $(status_of CapEff) == "$1" && $(status_of CapBnd) == "$1" ]] || { grep Cap "/proc/$(inlet_process)/status" && return 1; }; }
is_first() { [[ $(status_of NSpid) == *$'\t1' ]]; }
read_only() { ! touch "$TREE/etc/new" 2>/dev/null; }
# A file of yet another user, as one that came over SMB may be.
delivers() {
    head -c 3000000 /dev/urandom >"$TREES/sample"
    install -D -o 1077 -m 644 -- "$TREES/sample" "$TREE/data/drop/$1"
    within 60 cmp -s -- "$TREES/sample" "$TREE/data/library/$1" || { tail -n 20 "$log" && return 1; }
}
# The folder is Inlet's, the file keeps what its source has.
masked() { [[ $(status_of Umask) == 0002 && $(stat -c %a "$TREE/data/library/$1") == 775 ]]; }
owned() { [[ $(stat -c %u:%g "$TREE/data/library/$1") == 1031:1032 ]]; }
check "before it runs it is unhealthy" unhealthy
check "it starts and becomes healthy" begin
check "the tree is read-only" read_only
check "it is PUID:PGID" is_user
check "it has CAP_LEASE and nothing else" has 0000000010000000
check "it is process 1" is_first
check "a file is delivered" delivers first.bin
check "what it writes is the user's" owned first.bin
check "a file in a folder is delivered" delivers gigs/third.bin
check "the folder that it makes is writable by the group, as UMASK=002 asks for" masked gigs
check "SIGTERM ends process 1" ends
check "then it is unhealthy" unhealthy
check "the state is in /state" test -s "$TREE/state/inlet/journal.sqlite"
CAPS="$(capabilities | sed 's/,+lease//')"
check "without cap_add: LEASE it starts as well" begin
check "and has no capability" has 0000000000000000
check "and delivers" delivers second.bin
check "and ends" ends
tally
