# shellcheck shell=bash
# What quickstart.sh, test.sh, check.sh, bench/*.sh, deb/*.sh and docker/*.sh share. Sourced, never run:
#     source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# Changes into the repository's root, so that every script works from any directory.

# sysexits.h: what a script ends with when something outside the repository is missing.
readonly EX_UNAVAILABLE=69

REPO_ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd -- "$REPO_ROOT" || exit 1

say() { printf '%s\n' "$*" >&2; }
die() {
    local status=$1
    shift
    say "$@"
    exit "$status"
}

# Swift 6.2 or newer on PATH; prints how to get one and exits 69 otherwise.
need_toolchain() {
    local found major minor
    found="$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' | head -n 1)" || true
    major="${found%%.*}"
    minor="${found#*.}"
    if [[ -n $found ]] && ((major > 6 || (major == 6 && minor >= 2))); then return 0; fi
    if [[ -n $found ]]; then found="Swift $found is first on PATH"; else found="no working 'swift' is on PATH"; fi
    die $EX_UNAVAILABLE "inlet needs Swift 6.2 or newer; $found.
Install one with swiftly (https://www.swift.org/install/linux/):
    curl -fO https://download.swift.org/swiftly/linux/swiftly-$(uname -m).tar.gz
    tar xzf swiftly-$(uname -m).tar.gz && ./swiftly init
then open a new shell and run this script again."
}

# "package probe": the package is missing when its probe fails. Probes rather than dpkg's list, because another
# package may provide the same thing (libstdc++-12-dev without g++, pkgconf) and other distributions have other names.
readonly BUILD_PACKAGES=(
    "ca-certificates file:/etc/ssl/certs/ca-certificates.crt"
    "git command:git"
    "binutils command:ld"
    "pkg-config command:pkg-config"
    "libc6-dev file:/usr/include/stdio.h"
    "g++ file:/usr/include/c++/*/vector"
    "libxml2-dev library:libxml2.so"
    "libncurses-dev library:libncurses.so"
    "libcurl4-openssl-dev pkg-config:libcurl"
    "libssl-dev pkg-config:libcrypto"
    "libyaml-dev pkg-config:yaml-0.1"
    "libisal-dev pkg-config:libisal"
    "libxxhash-dev pkg-config:libxxhash"
    "libsqlite3-dev pkg-config:sqlite3"
    "libpq-dev file:/usr/include/postgresql/libpq-fe.h"
)

# What only the tests use.
# shellcheck disable=SC2034  # test.sh, sanitize.sh and mutations.sh do.
readonly TEST_PACKAGES=(
    "libmagic1 library:libmagic.so.1"
    "bindfs command:bindfs"
    "libvips-tools command:vips"
    "dbus command:dbus-daemon"
    "exfat-fuse file:/usr/sbin/mount.exfat-fuse"
    "exfatprogs command:mkfs.exfat"
    "openssl command:openssl"
    "libpq5 library:libpq.so.5"
    "pgbouncer file:/usr/sbin/pgbouncer"
    "postgresql file:/usr/lib/postgresql/*/bin/initdb"
    "sqlite3 command:sqlite3"
    "python3-dbusmock file:/usr/lib/python3/dist-packages/dbusmock/mockobject.py"
    "python3-venv file:/usr/lib/python3*/ensurepip/__init__.py"
    "udisks2 command:udisksctl"
)

# What makes the manual, for the distribution's own Python.
# shellcheck disable=SC2034  # docs.sh and deb/build.sh do.
readonly MARKDOWN_PACKAGE="python3-markdown-it file:/usr/lib/python3/dist-packages/markdown_it/__init__.py"

# markdown_python: the Python that has it; another one may come first on PATH.
markdown_python() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import markdown_it' 2>/dev/null; then printf '%s\n' "$python" && return; fi
    done
    die $EX_UNAVAILABLE "no Python has markdown_it (Debian: python3-markdown-it)"
}

# present PROBE
present() {
    local kind=${1%%:*} what=${1#*:}
    case $kind in
    command) command -v "$what" >/dev/null ;;
    file) compgen -G "$what" >/dev/null ;;
    pkg-config) pkg-config --exists "$what" 2>/dev/null ;;
    library) { PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null || true; } | grep -F "$what" >/dev/null ;;
    esac
}

# need_packages ["package probe"…]: installs what is missing of BUILD_PACKAGES and of the arguments.
# shellcheck disable=SC2120  # most callers need nothing beside what a build needs
need_packages() {
    local entry missing=()
    for entry in "${BUILD_PACKAGES[@]}" "$@"; do
        present "${entry#* }" || missing+=("${entry%% *}")
    done
    ((${#missing[@]} > 0)) || return 0
    if ! command -v apt-get >/dev/null; then
        die $EX_UNAVAILABLE "missing (by their Debian names): ${missing[*]}
This is not Debian or Ubuntu: install their equivalents (pkg-config must find libcurl, libcrypto (OpenSSL 3), yaml-0.1, libisal, libxxhash and sqlite3), then run this script again."
    fi
    install_packages "${missing[@]}"
}

install_packages() {
    local root=()
    if ((EUID != 0)); then
        # Without a terminal sudo could only hang at its password prompt.
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            root=(sudo)
        else
            die $EX_UNAVAILABLE "missing packages; as root, run
    apt-get update && apt-get install -y --no-install-recommends $*
then run this script again."
        fi
    fi
    say "installing: $*"
    local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120)
    apt_update "${apt[@]}"
    "${apt[@]}" install -y --no-install-recommends "$@" >&2 ||
        die $EX_UNAVAILABLE "apt-get could not install: $*
Its message is above; put it right, then run this script again."
}

# A first boot's unattended upgrade holds the list lock, for which apt-get has no time-out of its own.
apt_update() {
    local tries output
    for tries in {1..12}; do
        if output="$("$@" update 2>&1)"; then return 0; fi
        [[ $output == *"Could not get lock"* ]] || break
        say "waiting for another apt-get to end ($tries of 12)"
        sleep 10
    done
    # One broken third-party list must not stop us: the packages may still be found in the others.
    say "$output" "apt-get update failed; going on with the lists that are there"
}

# What `inlet --version` says of a release build: hash and day of the commit, a + where files differ from it. Nothing
# outside of a clone. A package or an image that is built without .git gives INLET_COMMIT itself.
commit() {
    local said changed=""
    said="$(git -c safe.directory="$REPO_ROOT" show -s --abbrev=7 --format='%h, %cs' HEAD 2>/dev/null)" || return 0
    git -c safe.directory="$REPO_ROOT" diff --quiet HEAD -- 2>/dev/null || changed=+
    printf '%s%s, %s' "${said%%,*}" "$changed" "${said#*, }"
}

# clang_runtime NAME: the path of a library below the compiler's, such as tsan; nothing where the toolchain has it not.
clang_runtime() {
    local toolchain
    toolchain="$(dirname -- "$(readlink -f -- "$(command -v swiftc)")")/.."
    find "$toolchain/lib/clang" -name "libclang_rt.$1-$(uname -m).a" -print -quit 2>/dev/null || true
}

# python_packages NAME REQUIREMENTS: a virtual environment below .build with what the file lists, made once; prints its path. Fails with
# the reason where that cannot be.
python_packages() {
    local place="$REPO_ROOT/.build/$1" log
    if ! cmp -s "$2" "$place/requirements.txt"; then
        rm -rf "$place"
        log="$(python3 -m venv "$place" 2>&1)" || { say "$log" "python3 -m venv does not work (Debian: python3-venv)" && return 1; }
        log="$("$place/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 -r "$2" 2>&1)" ||
            { say "$(tail -n 3 <<<"$log")" "PyPI cannot be reached, or has not all of $2 for this Python" && return 1; }
        # Last: it says that all is there.
        cp "$2" "$place/requirements.txt"
    fi
    printf '%s\n' "$place"
}

# Sets INLET_BINARY to the release binary, unless it names one.
need_binary() {
    if [[ -z ${INLET_BINARY:-} ]]; then
        need_toolchain
        need_packages
        # shellcheck disable=SC2119  # none of this script's arguments
        build_release
        INLET_BINARY="$(release_binary)"
    fi
    export INLET_BINARY
}

# icu_data: makes the part of ICU's data that Inlet uses, and prints its path. Nothing without Python, or where the toolchain has
# no such data: the binary is 27 MB bigger then, and works as well.
icu_data() {
    local folder object="$REPO_ROOT/.build/icu_data.o"
    present command:python3 || return 0
    folder="$(swiftc -print-target-info -static-stdlib | sed -n 's/.*"runtimeResourcePath": "\(.*\)".*/\1/p')"
    mkdir -p "$REPO_ROOT/.build"
    if python3 -B packaging/icu_data.py "$folder/linux/lib_FoundationICU.a" "$object" >&2; then
        printf '%s\n' "$object"
    else
        say "ICU's data is linked whole: see the message above, or the toolchain has other data than packaging/icu_data.py knows."
    fi
}

# build_release [OPTION…]: `inlet`, and `inlet-host` beside it.
# shellcheck disable=SC2120  # .ci/run gives options
build_release() {
    local product data
    data="$(icu_data)"
    for product in inlet inlet-host; do
        INLET_COMMIT="${INLET_COMMIT:-$(commit)}" INLET_ICU="$data" \
            swift build -c release --static-swift-stdlib --product "$product" "$@" >&2
    done
}
release_binary() { printf '%s/inlet\n' "$(swift build -c release --static-swift-stdlib --show-bin-path)"; }

# The debug build of everything, with the tests. check.sh and test.sh share it, flags included, so that nothing is built twice.
# What we depend on is optimised, as in the release: Package.swift takes that back for our own targets. In a folder of its own,
# because a plain `swift build` has other flags, and would have all of it built anew.
readonly TESTS_BUILD=.build/tests
build_tests() {
    swift build --build-tests --scratch-path "$TESTS_BUILD" --explicit-target-dependency-import-check error -Xswiftc -O >&2
}

passed=0
failed=0

# check TITLE COMMAND…: one line, with the seconds it took where it took some, and the command's output when it failed.
check() {
    local title=$1 output begin=$SECONDS
    shift
    if output="$("$@" 2>&1)"; then
        ((SECONDS - begin < 5)) || title+=" ($((SECONDS - begin)) s)"
        printf 'ok    %s\n' "$title"
        passed=$((passed + 1))
    else
        printf 'FAIL  %s\n' "$title"
        # shellcheck disable=SC2001  # every line is indented, which ${//} cannot do
        sed 's/^/        /' <<<"$output"
        failed=$((failed + 1))
    fi
}

# tally: the last line; fails when a check has.
tally() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    ((failed == 0))
}
