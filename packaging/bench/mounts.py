"""File systems that come and go while a bench runs: a helper keeps root's rights, and the bench gives them up."""

# Not needed before a connection is made, when a Python that lies in root's home can no longer be read.
import encodings.idna  # noqa: F401
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

SIZE = 256 << 20
# Whom a bench is afterwards: root may read what was locked away, and so would its agent.
USER = "nobody"


class Mounts:
    """Disk images that are mounted at folders and taken off again. The helper ends with this process."""

    def __init__(self, folder):
        """Gives `folder` to USER, whom this process is from then on; the images are made in it."""
        owner = pwd.getpwnam(USER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._helper = subprocess.Popen(
            [sys.executable, "-B", __file__, str(folder)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.setgroups([])
        os.setresgid(owner.pw_gid, owner.pw_gid, owner.pw_gid)
        os.setresuid(owner.pw_uid, owner.pw_uid, owner.pw_uid)

    @staticmethod
    def are_possible():
        """Whether this process may mount, and has the tools."""
        if os.geteuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "losetup"))):
            return False
        return subprocess.run(["losetup", "-f"], capture_output=True).returncode == 0

    def make(self, place):
        """Makes a disk of USER's, and mounts it at a folder that is there."""
        self._ask("make", place)

    def mount(self, place):
        self._ask("mount", place)

    def unmount(self, place):
        """Takes it off as a pulled card goes, whoever uses it."""
        self._ask("unmount", place)

    def close(self):
        self._helper.stdin.close()
        self._helper.wait(60)

    def _ask(self, word, place):
        print(word, place, file=self._helper.stdin, flush=True)
        said = self._helper.stdout.readline().strip()
        if said != "ok":
            raise RuntimeError(f"{word} {place}: {said or 'the helper has died; its message is above'}")


def run(*command):
    """- Returns: what it printed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def make_disk(image):
    """- Returns: the device of a new file system, which belongs to USER."""
    owner = pwd.getpwnam(USER)
    with open(image, "wb") as file:
        file.truncate(SIZE)
    run("mkfs.ext4", "-q", "-E", f"root_owner={owner.pw_uid}:{owner.pw_gid}", str(image))
    return run("losetup", "-f", "--show", str(image))


def unmount(place):
    """In order when nobody looks inside just now, else without asking."""
    if subprocess.run(["umount", place], stderr=subprocess.DEVNULL).returncode != 0:
        run("umount", "-l", place)


def serve(folder):
    """Until the bench has no more to ask, however it ends."""
    devices = {}
    try:
        for line in sys.stdin:
            word, place = line.rstrip("\n").split(" ", 1)
            if word == "make":
                devices[place] = make_disk(Path(folder) / f"disk{len(devices)}.img")
            if word == "unmount":
                unmount(place)
            else:
                run("mount", devices[place], place)
            print("ok", flush=True)
    finally:
        for place, device in devices.items():
            subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL)
            subprocess.run(["losetup", "-d", device], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    serve(sys.argv[1])
