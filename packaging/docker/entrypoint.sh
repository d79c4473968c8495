#!/bin/sh
# Runs inlet in a container as the user PUID:PGID (1000:1000 without them). UMASK (022 without it) takes rights from the folders
# and logs that it makes; a copy keeps the rights of its source.
#     inlet-container run            what the image does without a command
#     inlet-container COMMAND…       any other command of inlet, for example: check --upload
#     inlet-container health         for HEALTHCHECK: the agent answers and its journal can be written
set -eu

: "${PUID:=1000}" "${PGID:=1000}" "${UMASK:=022}"

fail() {
    echo "inlet: $*" >&2
    exit 78
}

# Ambient, not in the file: a file's capability that the container does not have would keep the program from starting.
# CAP_LEASE is capability 28 (linux/capability.h).
has_lease() {
    bounding="$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)"
    [ $((0x$bounding >> 28 & 1)) -eq 1 ]
}

check_user() {
    case "$PUID$PGID" in *[!0-9]*) fail "PUID and PGID must be numbers, not '$PUID' and '$PGID'" ;; esac
    if [ "$PUID" -eq 0 ]; then fail "PUID is 0: give it the id of the user who owns the files (id -u NAME)"; fi
}

# What others than the user may never have is fixed: a mask that takes the user's own rights would lock it out.
set_mask() {
    case "$UMASK" in
    [0-7][0-7] | 0[0-7][0-7] | 00[0-7][0-7]) umask "$UMASK" ;;
    *) fail "UMASK must be octal and leave the user its rights, such as 022 or 002, not '$UMASK'" ;;
    esac
}

# This script again as the user, for good; the groups that were given to the container (group_add) stay, root's goes.
become_user() {
    groups="$(id -G | tr ' ' '\n' | grep -vx 0 | paste -sd, -)"
    if [ -n "$groups" ]; then groups="--groups=$groups"; else groups=--clear-groups; fi
    lease=
    if has_lease; then lease=,+lease; fi
    exec setpriv --reuid="$PUID" --regid="$PGID" "$groups" --no-new-privs \
        --inh-caps="-all$lease" --ambient-caps="-all$lease" --bounding-set="-all$lease" "$0" "$@"
}

# Only where an agent listens: without one `status` would take the lock of the queue, just when an agent may be starting.
health() {
    [ -S "$XDG_STATE_HOME/inlet/control.sock" ] || { echo "no agent listens in $XDG_STATE_HOME/inlet" && exit 1; }
    answer="$(/usr/bin/inlet status --json)" || exit 1
    case "$answer" in *'"running" : true'*) ;; *) echo "no agent answers" && exit 1 ;; esac
    case "$answer" in *'"journal_failing" : true'*) echo "the journal cannot be written" && exit 1 ;; esac
    echo "running"
}

[ $# -gt 0 ] || set -- run
set_mask

if [ "$(id -u)" -eq 0 ]; then
    check_user
    # A new volume belongs to root. Only the folder: what another user has left in it, inlet names when it cannot use it.
    if [ "$(stat -c %u /state)" -ne "$PUID" ]; then chown "$PUID:$PGID" /state; fi
    become_user "$@"
fi

case "$1" in
health)
    health
    exit
    ;;
run)
    if [ ! -e "$INLET_CONFIG" ]; then
        fail "user $(id -u) finds no $INLET_CONFIG: put an inlet.yaml into the folder that is mounted there, readable by that user
(docker compose run --rm inlet init writes one), then start the container again"
    fi
    ;;
esac
exec /usr/bin/inlet "$@"
