"""inlet's peers, as watch.py sees them; each is measured where it is installed."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from watchers import Watcher


class Inotifywait(Watcher):
    name = "inotifywait"
    is_ready = re.compile(rb"Watches established")

    def command(self):
        return ["inotifywait", "-m", "-r", "-e", "close_write", "-e", "moved_to", "--format", "%w%f", str(self.root)]


class Watchman(Watcher):
    """The server of its own; a client of it subscribes to the files and prints them."""

    name = "watchman"
    is_ready = re.compile(rb'"subscribe":"bench"')

    def command(self):
        # Otherwise it collects 4 KiB before it says anything to a file.
        return ["stdbuf", "-oL", "watchman", f"--sockname={self.socket}", "--no-spawn", "-j", "-p", "--no-pretty",
                "--server-encoding=json"]

    def prepare(self):
        self.socket = self.folder / "sock"
        self.server = subprocess.Popen(
            ["watchman", "--foreground", "--no-save-state", f"--sockname={self.socket}",
             f"--logfile={self.folder}/server.log", f"--pidfile={self.folder}/pid", f"--statefile={self.folder}/state"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self._is_up():
            if self.server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"watchman does not start: {(self.folder / 'server.log').read_text()[-1000:]}")
            time.sleep(0.02)

    def _ask(self, question):
        subprocess.run(["watchman", f"--sockname={self.socket}", "--no-spawn", "-j"], check=True,
                       input=json.dumps(question).encode(), stdout=subprocess.DEVNULL)

    def _is_up(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.socket)) == 0

    def __enter__(self):
        self.prepare()
        self._offset = self._first = 0
        self.began = time.monotonic()
        with open(self.said, "ab") as file:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE if self.piped else file, stderr=file)
        wanted = {"expression": ["type", "f"], "fields": ["name"], "empty_on_fresh_instance": True}
        self._ask(["watch", str(self.root)])
        # Answered when the tree has been crawled.
        self._ask(["query", str(self.root), {"expression": ["false"], "sync_timeout": 600_000}])
        self.process.stdin.write(json.dumps(["subscribe", str(self.root), "bench", wanted]).encode() + b"\n")
        self.process.stdin.close()
        self.pid = self.server.pid
        return self

    def __exit__(self, *failure):
        super().__exit__(*failure)
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


class Lsyncd(Watcher):
    """With rsync into a folder beside; a file counts as noticed when it is there. `is_idle`: it only watches."""

    name = "lsyncd"

    def __init__(self, folder, root, piped=False, is_idle=False):
        super().__init__(folder, root, piped)
        self.target, self.is_idle = self.folder / "target", is_idle
        self.is_ready = re.compile(rb"bench: watching" if is_idle else rb"Startup of .* finished")

    def prepare(self):
        self.target.mkdir(exist_ok=True)
        action = """{
  init = function(event) log("Normal", "bench: watching") end,
  action = function(inlet) inlet.discardEvent(inlet.getEvent()) end, delay = 1, maxProcesses = 1 }"""
        (self.folder / "lsyncd.lua").write_text(
            "settings { nodaemon = true, inotifyMode = 'CloseWrite' }\n"
            f"sync {{ {action if self.is_idle else 'default.rsync'}, delay = 1, source = '{self.root}', "
            f"target = '{self.target}' }}\n")

    def command(self):
        return ["lsyncd", "-nodaemon", str(self.folder / "lsyncd.lua")]

    def noticed(self):
        return sum(len(names) for _, _, names in os.walk(self.target))


PEERS = {"inotifywait": Inotifywait, "watchman": Watchman, "lsyncd": Lsyncd}


def installed():
    return [kind for name, kind in PEERS.items() if shutil.which(name)]
