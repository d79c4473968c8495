#!/usr/bin/env bash
# Tries the Debian package in a debootstrap tree: build it twice, install, run, upgrade, remove, purge. Needs root and a
# Debian mirror; nothing is sent further than loopback. test.sh [FILE.deb]; without one it is built (see build.sh).
# Not shown here: a boot. What an init would do with the unit, systemd-analyze says; its ExecStart is run by hand.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"
source packaging/deb/tree.sh
try_package packaging/deb/test.sh "$@"
cp -- "$package" "$TREE/root/inlet.deb"
version="$(dpkg-deb -f "$package" Version)"

# --- the package as a file

same_again() {
    local again
    again="$(packaging/deb/build.sh "$(mktemp -d "$TREE/tmp/again.XXXX")" 2>/dev/null)"
    cmp -- "$package" "$again"
}
holds() { dpkg-deb -c "$package" | awk '{print $1, $2, $6}' | grep -Fx -- "$1"; }
# Every library of the binary has its package, found and not written down.
libraries_are_named() {
    local name depends
    depends="$(dpkg-deb -f "$package" Depends)"
    for name in libc6 libcurl4 libisal2 libsqlite3-0 libssl3 libyaml-0-2; do
        [[ $depends == *$name* ]] || { echo "$name is not in: $depends" && return 1; }
    done
}
all_of_root() { ! dpkg-deb -c "$package" | awk '$2 != "root/root"' | grep .; }
# Directories 755, files 644, but for the two programs and the link to the manual.
usual_modes() { ! dpkg-deb -c "$package" | awk '{print $1, $6}' | grep -Ev '^(drwxr-xr-x|-rw-r--r--) |^-rwxr-xr-x ./usr/(bin/inlet|libexec/inlet/inlet-host)$|^lrwxrwxrwx ./usr/share/doc/inlet/html$'; }
only_below_usr() { ! dpkg-deb -c "$package" | awk '{print $6}' | grep -Ev '^\./(usr/.*)?$'; }
small_program() {
    local bytes
    bytes="$(dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/bin/inlet | wc -c)"
    ((bytes <= 70000000)) || { echo "$bytes bytes" && return 1; }
}
sums_match() { inside sh -c 'cd / && md5sum --quiet -c /var/lib/dpkg/info/inlet.md5sums'; }
lintian_is_content() { lintian --fail-on error --suppress-tags bad-distribution-in-changes-file -- "$package"; }

check "it is built again, bit for bit" same_again
check "it is for this machine's architecture" test "$(dpkg-deb -f "$package" Architecture)" = "$(dpkg --print-architecture)"
check "its libraries are its dependencies" libraries_are_named
check "libmagic1 is recommended" test "$(dpkg-deb -f "$package" Recommends)" = libmagic1
check "all belongs to root" all_of_root
check "modes are the usual ones" usual_modes
check "files are below /usr" only_below_usr
check "the program takes at most 70 MB" small_program
for file in "-rwxr-xr-x root/root ./usr/bin/inlet" "-rwxr-xr-x root/root ./usr/libexec/inlet/inlet-host" \
    "-rw-r--r-- root/root ./usr/lib/systemd/system/inlet.service" \
    "-rw-r--r-- root/root ./usr/lib/systemd/system/inlet-card@.service" \
    "-rw-r--r-- root/root ./usr/share/doc/inlet/examples/cards/90-inlet-cards.rules" \
    "-rw-r--r-- root/root ./usr/share/doc/inlet/examples/cards/50-inlet-cards.rules" \
    "-rw-r--r-- root/root ./usr/lib/sysctl.d/30-inlet.conf" "-rw-r--r-- root/root ./usr/share/man/man1/inlet.1.gz" \
    "-rw-r--r-- root/root ./usr/share/bash-completion/completions/inlet" \
    "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_inlet" \
    "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/inlet.fish" \
    "-rw-r--r-- root/root ./usr/share/doc/inlet/changelog.gz" "-rw-r--r-- root/root ./usr/share/doc/inlet/copyright" \
    "-rw-r--r-- root/root ./usr/share/doc/inlet/examples/nas-to-r2.yaml" \
    "-rw-r--r-- root/root ./usr/share/inlet/manual/index.html" "-rw-r--r-- root/root ./usr/share/inlet/manual/style.css" \
    "lrwxrwxrwx root/root ./usr/share/doc/inlet/html"; do
    check "it holds ${file##* .}" holds "$file"
done
if command -v lintian >/dev/null; then check "lintian finds no errors" lintian_is_content; fi

# --- installed

own() { [[ $(inside stat -c '%U:%G %a' "$1") == "$2" ]] || { inside stat "$1" && return 1; }; }
installed_version() { [[ " $(inside inlet --version) " == *" ${version%-*} "* ]]; }
# --man=no: there is no man in the tree to look its page up with.
unit_verifies() { inside systemd-analyze verify --man=no /usr/lib/systemd/system/inlet.service; }
card_unit_verifies() { inside systemd-analyze verify --man=no inlet-card@sdb1.service; }
# Since systemd 254; before, udev itself says what it does not understand.
card_rule_verifies() { ! inside udevadm verify --help >/dev/null 2>&1 || inside udevadm verify /usr/share/doc/inlet/examples/cards/90-inlet-cards.rules; }
cards_are_off() { ! inside find /etc/udev/rules.d /usr/lib/udev/rules.d /etc/polkit-1 /usr/share/polkit-1 -name '*inlet*' 2>/dev/null | grep .; }
# In tenths: 30 is "3.0".
exposure() { inside systemd-analyze security --offline=true --no-pager --threshold=30 /usr/lib/systemd/system/inlet.service; }
unit_says() { grep -qx "$1" "$TREE/usr/lib/systemd/system/inlet.service"; }
# completions_know COMMAND: it is offered in each shell; zsh finds its file by the first line.
completions_know() {
    local file
    for file in bash-completion/completions/inlet zsh/vendor-completions/_inlet fish/vendor_completions.d/inlet.fish; do
        grep -qw -- "$1" "$TREE/usr/share/$file" || { echo "$1 is not in $file" && return 1; }
    done
    [[ $(head -n 1 "$TREE/usr/share/zsh/vendor-completions/_inlet") == "#compdef inlet" ]]
}
mandb_reads() { inside sh -c 'gzip -dc /usr/share/man/man1/inlet.1.gz' | grep -q '^\.\(TH\|Dt\) '; }

inside_apt update >/dev/null
check "systemd comes first" inside_apt install --no-install-recommends systemd
check "apt installs it and what it depends on" inside_apt install /root/inlet.deb
check "every file is as it was packed" sums_match
check "the user's own group, no shell, no password" inside sh -c \
    'id inlet && getent passwd inlet | grep -q ":/var/lib/inlet:/usr/sbin/nologin$" && passwd -S inlet | grep -q " L "'
check "/var/lib/inlet is the user's alone" own /var/lib/inlet "inlet:inlet 750"
check "/etc/inlet is the service's, and its group may only read there" own /etc/inlet "inlet:inlet 2750"
check "inlet --version is $version" installed_version
check "systemd-analyze verify" unit_verifies
check "systemd-analyze verify, of a card's unit" card_unit_verifies
check "udevadm verify, of the rule for cards" card_rule_verifies
check "nothing mounts or ejects cards by itself until it is switched on" cards_are_off
check "systemd-analyze security is 3 at most" exposure
check "CAP_LEASE is granted" unit_says AmbientCapabilities=CAP_LEASE
# Without it ProtectSystem= forbids the log file that config/inlet.yaml names.
check "the service has a folder for its log file" unit_says LogsDirectory=inlet
check "the service is enabled" test -L "$TREE/etc/systemd/system/multi-user.target.wants/inlet.service"
check "the manual page can be read" mandb_reads
check "the manual opens from /usr/share/doc" inside grep -q '<title>' /usr/share/doc/inlet/html/index.html
check "bash takes the completions" inside bash -n /usr/share/bash-completion/completions/inlet
check "the completions of all shells are of this program" completions_know doctor

# --- running, as the unit would start it

make_folders /srv /root/inlet.yaml
mkdir -p -- "$TREE/run/credentials"
inside chown inlet:inlet /srv/library

unit_value() { sed -n "s/^$1=//p" "$TREE/usr/lib/systemd/system/inlet.service"; }
# as_service COMMAND…: with the unit's user, environment, umask and capabilities.
as_service() {
    local environment
    mapfile -t environment < <(unit_value Environment)
    inside env "${environment[@]}" HOME=/var/lib/inlet setpriv --reuid inlet --regid inlet --init-groups \
        --inh-caps=-all,+lease --ambient-caps=-all,+lease --bounding-set=-all,+lease --no-new-privs \
        sh -c 'umask 0027 && exec "$@"' sh "$@"
}
# checks AS: 1: warnings. There is no network here, and sysctl is the host's.
checks() {
    local ended=0
    "$1" inlet check --config /etc/inlet/inlet.yaml || ended=$?
    ((ended <= 1))
}
# Root's commands make a journal and a lock where there are none.
state_is_the_services() {
    local id
    id="$(inside id -u inlet)"
    [[ -s $TREE/var/lib/inlet/journal.sqlite ]] && ! find "$TREE/var/lib/inlet" ! '(' -uid "$id" -gid "$(inside id -g inlet)" ')' | grep .
}
# Asked only once it listens: without an agent `status` takes the lock for a moment.
runs() { [[ -S $TREE/var/lib/inlet/control.sock ]] && inside inlet status --json --config /etc/inlet/inlet.yaml | grep -q '"running" : true'; }
begin() {
    local command
    read -ra command <<<"$(unit_value ExecStart)"
    as_service "${command[@]}" >>"$TREE/var/log/inlet.log" 2>&1 &
    within 60 runs || { cat -- "$TREE/var/log/inlet.log" && return 1; }
}
drop() {
    head -c 3000000 /dev/urandom >"$TREE/root/$1"
    cp -- "$TREE/root/$1" "$TREE/srv/drop/$1"
}
delivered() { within 60 cmp -s -- "$TREE/root/$1" "$TREE/srv/library/$1" || { tail -n 20 "$TREE/var/log/inlet.log" && return 1; }; }
reloads() {
    local id
    id="$(inlet_process)"
    kill -HUP "$id"
    within 30 grep -q '"event":"config\.' "$TREE/var/log/inlet.log" && [[ -d /proc/$id ]]
}
reload_command() {
    local command
    read -ra command <<<"$(unit_value ExecReload)"
    as_service "${command[@]}"
}

inside sh -c 'umask 027 && cp /root/inlet.yaml /etc/inlet/'
check "what root writes to /etc/inlet the service can read, and others cannot" own /etc/inlet/inlet.yaml "root:inlet 640"
check "inlet check as root, before the first start" checks inside
check "inlet status as root, before the first start" inside inlet status --config /etc/inlet/inlet.yaml
check "what they made in /var/lib/inlet is the service's" state_is_the_services
check "inlet check as the service's user" checks as_service
check "the unit's command runs" begin
check "all in /var/lib/inlet is the service's" state_is_the_services
drop first.bin
check "a file of another user is delivered" delivered first.bin
check "its state is in /var/lib/inlet" test -e "$TREE/var/lib/inlet/journal.sqlite"
check "SIGHUP reloads" reloads
check "so does the unit's command for it" reload_command

# --- upgraded over itself

user="$(inside id -u inlet)"
check "it is upgraded over itself" inside_apt install --reinstall /root/inlet.deb
check "the user is the same" test "$(inside id -u inlet)" = "$user"
check "the configuration is the same" inside cmp /root/inlet.yaml /etc/inlet/inlet.yaml
check "SIGTERM ends it" ends
check "it starts again" begin
drop second.bin
check "and delivers" delivered second.bin
check "and ends" ends
check "postinst may be run again" inside /var/lib/dpkg/info/inlet.postinst configure "$version"

# --- removed, purged

check "it is removed" inside_apt remove inlet
check "the program is gone" test ! -e "$TREE/usr/bin/inlet"
check "and its helper" test ! -e "$TREE/usr/libexec/inlet"
check "removed: the queue stays" test -s "$TREE/var/lib/inlet/journal.sqlite"
check "removed: the configuration stays" test -s "$TREE/etc/inlet/inlet.yaml"
check "it comes back" inside_apt install /root/inlet.deb
check "and knows what it delivered" inside sh -c 'inlet receipts --config /etc/inlet/inlet.yaml | grep -q second.bin'
check "it is purged" inside_apt purge inlet
check "purged: the configuration is gone" test ! -e "$TREE/etc/inlet"
check "purged: the folder of logs is gone" test ! -e "$TREE/var/log/inlet"
check "purged: nothing is enabled" test ! -L "$TREE/etc/systemd/system/multi-user.target.wants/inlet.service"
check "purged: the queue stays, and its user" inside sh -c 'test -s /var/lib/inlet/journal.sqlite && id inlet'
rm -rf -- "${TREE:?}"/var/lib/inlet/*
check "purged without a queue: its folder goes" inside sh -c \
    'apt-get -q -y install /root/inlet.deb && apt-get -q -y purge inlet && test ! -e /var/lib/inlet'
tally
