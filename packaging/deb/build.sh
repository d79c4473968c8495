#!/usr/bin/env bash
# Builds the Debian package of this machine's architecture and prints its path: build.sh [FOLDER] (default .build/deb).
# The release binary is built first; INLET_BINARY=FILE takes one that is there. The same sources and binary give the same
# package, bit for bit (INLET_DEB_LEVEL=1 compresses less, for a try). Its dependencies are those of the distribution that
# it is built on. The program's symbols are left beside the package, for gdb(1) and perf(1): `inlet_VERSION_ARCHITECTURE.debug`.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

(($# <= 1)) || die 64 "usage: build.sh [FOLDER]"
# Relative to here, and not to where build.sh was called from: the tools below change their folder.
output="$(realpath -m -- "${1:-.build/deb}")"
here="$REPO_ROOT/packaging/deb"
present command:dpkg-shlibdeps || install_packages dpkg-dev
present command:python3 || install_packages python3
present "${MARKDOWN_PACKAGE#* }" || install_packages "${MARKDOWN_PACKAGE%% *}"

version="$(dpkg-parsechangelog -l "$here/changelog" -S Version)"
architecture="$(dpkg --print-architecture)"
# The time of what was made later.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l "$here/changelog" -S Timestamp)}"
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC
umask 022

need_binary
binary="$INLET_BINARY"
if objdump -p "$binary" | grep -q 'NEEDED *libswift'; then
    die 65 "$binary needs Swift's libraries, which no Debian package has: build it with --static-swift-stdlib"
fi
# Of "inlet 0.9.0 (ca79110, 2026-11-22)" the number; of the package's 0.9.0-1 what is not the packaging's own.
found="$("$binary" --version)"
[[ " $found " == *" ${version%-*} "* ]] ||
    die 65 "$binary is version $found, packaging/deb/changelog says $version"

work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
tree="$work/tree"

# put MODE SOURCE TARGET
put() { install -D -m "$1" -- "$2" "$tree/$3"; }
# put_gz SOURCE TARGET: -n leaves name and time out of it.
put_gz() {
    mkdir -p -- "$(dirname -- "$tree/$2")"
    gzip -9nc -- "$1" >"$tree/$2.gz"
    chmod 644 -- "$tree/$2.gz"
}

# The program, and its symbols beside the package
symbols="$output/inlet_${version}_$architecture.debug"
mkdir -p -- "$output"
helper="$(dirname -- "$binary")/inlet-host"
[[ -x $helper ]] || die 66 "$helper is missing: build it with 'swift build -c release --static-swift-stdlib --product inlet-host'"
put 755 "$binary" usr/bin/inlet
put 755 "$helper" usr/libexec/inlet/inlet-host
objcopy --only-keep-debug -- "$binary" "$symbols"
chmod 644 -- "$symbols"
strip --strip-unneeded --remove-section=.comment -- "$tree/usr/bin/inlet" "$tree/usr/libexec/inlet/inlet-host"
objcopy --add-gnu-debuglink="$symbols" -- "$tree/usr/bin/inlet"

# The service
put 644 packaging/systemd/inlet.service usr/lib/systemd/system/inlet.service
put 644 packaging/systemd/30-inlet.conf usr/lib/sysctl.d/30-inlet.conf
put 644 packaging/systemd/fanotify.conf usr/share/doc/inlet/examples/systemd/fanotify.conf

# Cards without a desktop: the unit does nothing until an administrator installs the rule.
put 644 packaging/systemd/inlet-card@.service usr/lib/systemd/system/inlet-card@.service
put 644 packaging/udev/90-inlet-cards.rules usr/share/doc/inlet/examples/cards/90-inlet-cards.rules
put 644 packaging/polkit/50-inlet-cards.rules usr/share/doc/inlet/examples/cards/50-inlet-cards.rules

# The manual
python3 -B packaging/docs/pages.py "$binary" "$work/man" >&2
for page in "$work/man"/*.[1-8]; do
    put_gz "$page" "usr/share/man/man${page##*.}/${page##*/}"
done

# The same as plain HTML. Below /usr/share/inlet, because the agent serves it and nothing may need /usr/share/doc (Debian
# policy, 12.3); the link is for people.
"$(markdown_python)" -B packaging/docs/manual.py "$binary" "$work/manual" >&2
for page in "$work/manual"/*; do put 644 "$page" "usr/share/inlet/manual/${page##*/}"; done
mkdir -p -- "$tree/usr/share/doc/inlet"
ln -s ../../inlet/manual "$tree/usr/share/doc/inlet/html"

# Completions
made="$work/completions"
sh packaging/docs/completions.sh "$made" "$binary" >&2
put 644 "$made/inlet.bash" usr/share/bash-completion/completions/inlet
put 644 "$made/_inlet" usr/share/zsh/vendor-completions/_inlet
put 644 "$made/inlet.fish" usr/share/fish/vendor_completions.d/inlet.fish

# Examples
put 644 config/inlet.yaml usr/share/doc/inlet/examples/inlet.yaml
put 644 config/inlet.schema.json usr/share/inlet/inlet.schema.json
for file in config/examples/*.yaml; do put 644 "$file" "usr/share/doc/inlet/${file#config/}"; done
for file in packaging/grafana/* packaging/prometheus/*; do
    [[ ! -f $file ]] || put 644 "$file" "usr/share/doc/inlet/examples/${file#packaging/}"
done

# Documents. What is linked in keeps its licence and notice: without all of them the package must not be passed on, nor made.
put 644 packaging/deb/copyright usr/share/doc/inlet/copyright
put_gz packaging/deb/changelog usr/share/doc/inlet/changelog
[[ -d .build/checkouts ]] ||
    die 66 "no .build/checkouts, from which the licences of what is linked in are taken: 'swift package resolve' gets them"
for folder in .build/checkouts/*/; do
    compgen -G "${folder}LICENSE*" >/dev/null || die 66 "$folder has no LICENSE"
done
find .build/checkouts -maxdepth 2 \( -name 'LICENSE*' -o -name 'NOTICE*' \) -type f | sort | while read -r file; do
    printf '==== %s\n\n' "${file#.build/checkouts/}"
    cat -- "$file"
    printf '\n'
done >"$work/licences"
put_gz "$work/licences" usr/share/doc/inlet/third-party-licenses

# What dpkg reads
mkdir -p -- "$work/debian" "$tree/DEBIAN"
cp -- "$here/control" "$here/changelog" "$work/debian/"
(
    cd -- "$work"
    dpkg-shlibdeps -Tdebian/substvars "$tree/usr/bin/inlet" "$tree/usr/libexec/inlet/inlet-host"
    dpkg-gencontrol -pinlet "-P$tree" -Tdebian/substvars -fdebian/files
) >&2
for file in postinst prerm postrm; do put 755 "$here/$file" "DEBIAN/$file"; done
(cd -- "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 644 -- "$tree/DEBIAN/control" "$tree/DEBIAN/md5sums"

package="$output/inlet_${version}_$architecture.deb"
# One thread: how the work is cut between several shows in the result.
dpkg-deb --root-owner-group -Zxz "-z${INLET_DEB_LEVEL:-6}" --threads-max=1 --build "$tree" "$package" >&2
printf '%s\n' "$package"
