# shellcheck shell=bash
# A Debian tree to try a package or an image in, for deb/test.sh and docker/test.sh. Sourced after lib.sh; needs root.
# The tree of debootstrap is kept in INLET_TREES (default: .build/trees); each run writes into a layer of its own above it.

TREES="${INLET_TREES:-$REPO_ROOT/.build/trees}"
SUITE=bookworm
MIRROR="${INLET_MIRROR:-http://deb.debian.org/debian}"

# try_package SCRIPT [FILE.deb]: how both scripts begin. Sets `package` to the file, or to one that is built; opens a tree.
try_package() {
    ((EUID == 0)) || die "$EX_UNAVAILABLE" "$1 needs root: it mounts and changes into a Debian tree"
    (($# <= 2)) || die 64 "usage: ${1##*/} [FILE.deb]"
    # Once more, with mounts that nobody else sees and that end with the script.
    if [[ -z ${INLET_OWN_MOUNTS:-} ]]; then
        export INLET_OWN_MOUNTS=1
        exec unshare --mount --propagation private -- "$@"
    fi
    export INLET_DEB_LEVEL="${INLET_DEB_LEVEL:-1}"
    package="${2:-}"
    [[ -n $package ]] || package="$(packaging/deb/build.sh)"
    open_tree
}

# The base tree, made once. The mark is made last: a tree that was left half done is made again.
base_tree() {
    local base="$TREES/$SUITE"
    [[ ! -e $base.done ]] || return 0
    command -v debootstrap >/dev/null || install_packages debootstrap
    say "making a Debian tree in $base"
    rm -rf -- "$base"
    mkdir -p -- "$base"
    debootstrap --variant=minbase "$SUITE" "$base" "$MIRROR" >&2 || die "$EX_UNAVAILABLE" "debootstrap could not make $base"
    : >"$base.done"
}

# open_tree: sets TREE to a tree of this run's own, with /proc, /dev and the names of this machine's servers.
open_tree() {
    local layer
    base_tree
    layer="$(mktemp -d "$TREES/layer.XXXXXX")"
    # shellcheck disable=SC2064  # the layer of now
    trap "close_tree '$layer'" EXIT
    mkdir -- "$layer/upper" "$layer/work" "$layer/tree"
    TREE="$layer/tree"
    mount -t overlay overlay -o "lowerdir=$TREES/$SUITE,upperdir=$layer/upper,workdir=$layer/work" "$TREE"
    mount -t proc proc "$TREE/proc"
    mount --rbind /dev "$TREE/dev"
    mount -t tmpfs -o mode=755 tmpfs "$TREE/run"
    mkdir -p -- "$TREES/archives/partial"
    mount --bind "$TREES/archives" "$TREE/var/cache/apt/archives"
    cp -L -- /etc/resolv.conf "$TREE/etc/resolv.conf"
    # No service is started in a tree without an init.
    printf '#!/bin/sh\nexit 101\n' >"$TREE/usr/sbin/policy-rc.d"
    chmod 755 -- "$TREE/usr/sbin/policy-rc.d"
    # Downloaded packages are kept for the next run.
    printf 'APT::Keep-Downloaded-Packages "true";\nBinary::apt::APT::Keep-Downloaded-Packages "true";\n' \
        >"$TREE/etc/apt/apt.conf.d/90keep"
    rm -f -- "$TREE/etc/apt/apt.conf.d/docker-clean"
}

close_tree() {
    local id
    for id in $(tree_processes); do kill -KILL "$id" 2>/dev/null || true; done
    umount --recursive --lazy -- "$1/tree" 2>/dev/null || true
    rm -rf --one-file-system -- "$1"
}

# The ids of what runs in the tree: by a word in its environment, as roots are told otherwise in another mount namespace.
tree_processes() {
    { grep -lzx "INLET_TREE=$TREE" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d / -f 3
}

# inlet_process: the id of the `inlet run` in the tree.
inlet_process() {
    local id
    for id in $(tree_processes); do
        [[ $(tr '\0' ' ' <"/proc/$id/cmdline" 2>/dev/null) != /usr/bin/inlet\ run* ]] || printf '%s\n' "$id"
    done
}

# ends: SIGTERM ends it.
ends() {
    local id
    id="$(inlet_process)"
    [[ -n $id ]] && kill -TERM "$id" && within 60 test ! -d "/proc/$id"
}

# make_folders FOLDER FILE: in the tree FOLDER/drop and FOLDER/library, and a configuration that delivers from one to the other.
make_folders() {
    mkdir -p -- "$TREE$1/drop" "$TREE$1/library"
    cat >"$TREE$2" <<YAML
destinations:
  library: { type: folder, path: $1/library }
watch:
  - path: $1/drop
    settle: 1s
routes:
  - name: all
    key: "{dir}/{name}"
    to: library
YAML
}

# inside COMMAND…: in the tree, with an environment of its own.
inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TZ=UTC \
        DEBIAN_FRONTEND=noninteractive "INLET_TREE=$TREE" chroot "$TREE" "$@"
}

inside_apt() { inside apt-get -q -y -o DPkg::Use-Pty=0 "$@"; }

# within SECONDS COMMAND…: until the command succeeds.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}
