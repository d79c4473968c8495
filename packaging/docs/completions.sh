#!/bin/sh
# Writes the completions of bash, zsh and fish into a folder, under the names that these shells look for:
#   packaging/docs/completions.sh FOLDER [INLET]
# INLET is the binary that they are of; without it, `inlet` of the PATH.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: packaging/docs/completions.sh FOLDER [INLET]" >&2
    exit 64
fi
folder=$1
inlet=${2:-inlet}
mkdir -p "$folder"
write() { # SHELL NAME: complete or not at all
    "$inlet" --generate-completion-script "$1" >"$folder/.$2.new"
    chmod 644 "$folder/.$2.new"
    mv "$folder/.$2.new" "$folder/$2"
}
write bash inlet.bash
write zsh _inlet
write fish inlet.fish
echo "wrote $folder/inlet.bash, $folder/_inlet and $folder/inlet.fish"
