"""What happens to a watched tree while watch.py measures: storms of folders, floods of files, a paced stream.

The files are called f<number>.bin, so that a report of one is known by its number. As a program: watch_load.py pace
FOLDER COUNT PER_SECOND writes files at that pace and prints when each was closed, in CLOCK_MONOTONIC ns.
"""

import json
import os
import sys
import time
from pathlib import Path

# Folders that the paced stream writes to in turn.
STREAM_FOLDERS = 10


def touch(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def storm(root, count, first):
    """`mkdir -p N/DCIM/100CANON` and a file in it, `count` times as fast as it goes."""
    for number in range(first, first + count):
        folder = f"{root}/{number}/DCIM/100CANON"
        os.makedirs(folder)
        with open(f"{folder}/f{number}.bin", "wb", buffering=0) as file:
            file.write(b"x")


def flood(root, count, first=0):
    """`count` files in one folder."""
    for number in range(first, first + count):
        touch(f"{root}/f{number}.bin")


def tree(root, files, directories):
    """`files` empty files, spread over `directories` folders, a hundred of these in each folder above them."""
    number = 0
    for index in range(directories):
        folder = f"{root}/{index // 100:04}/{index % 100:02}"
        os.makedirs(folder)
        for _ in range(number, files * (index + 1) // directories):
            touch(f"{folder}/f{number}.bin")
            number += 1


def stream_folders(root):
    folders = [Path(root) / f"card-{number}" for number in range(STREAM_FOLDERS)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return folders


def pace(root, count, per_second):
    """The moment of each file's close; the schedule is absolute, so that a late file does not delay the others."""
    folders, closed = stream_folders(root), []
    began = time.monotonic()
    for number in range(count):
        pause = began + number / per_second - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        with open(folders[number % len(folders)] / f"f{number}.bin", "wb", buffering=0) as file:
            file.write(b"x")
            # Taken before the call: the kernel reports the close while it runs.
            closed.append(time.monotonic_ns())
    return closed


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] != "pace":
        sys.exit(__doc__)
    json.dump(pace(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])), sys.stdout)
