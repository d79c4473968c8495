"""A real agent for the browser: its folders, its configuration, and a sandbox to send to."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import agent  # noqa: E402
import postgres  # noqa: E402
from process import until  # noqa: E402
from servers import Sandbox, closed_port  # noqa: E402, F401
from stations import LOGIN, inlet  # noqa: E402

TOKEN = "a-token-of-the-browser-test"
READER = "a-reader-of-the-browser-test"
KIOSK = "a-kiosk+of/the%browser=test"

# Names that would be markup, other text or another line if a page were careless; and the longest one.
HOSTILE = [
    b"<img src=x onerror=alert(1)>.txt",
    "\u202egpj.exe.txt".encode(),
    b"two\nlines.txt",
    b"'\"&<script>alert(2)<\\.txt",
    b"not utf-8 \xff.txt",
    b"x" * 251 + b".txt",
]


class Agent:
    """A running `inlet run` with a folder to watch and one to send to."""

    def __init__(self, base, secrets):
        self.base = base
        self.drop, self.library = base / "drop", base / "library"
        self.library.mkdir(parents=True)
        self.port = closed_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.secrets = secrets
        self.settings = {
            "dashboard": {"listen": f"127.0.0.1:{self.port}"}
                         | ({"token": TOKEN, "read_only_token": READER, "edit": True} if secrets else {}),
            "destinations": {"library": {"type": "folder", "path": str(self.library)}},
        }
        self.agent = None
        # A folder that it watches as the share `media` of its fleet.
        self.share = None

    def write(self):
        self.file = agent.configure(self.base, **self.settings)
        if self.share:
            lines = self.file.read_text().splitlines()
            entry = json.dumps({"path": str(self.share), "place": "media", "settle": "200ms"})
            lines = [f"{line[:-1]}, {entry}]" if line.startswith("watch: ") else line for line in lines]
            self.file.write_text("\n".join(lines) + "\n")

    def start(self):
        self.write()
        self.agent = agent.Agent(self.file)
        self.agent.wait_for("answer", self.answers, 20)

    def answers(self):
        try:
            return self.get("session")
        except OSError:
            return None

    def get(self, path):
        request = urllib.request.Request(f"{self.url}/api/v1/{path}")
        if self.secrets:
            request.add_header("Authorization", "Bearer " + TOKEN)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def kill(self):
        """As the kernel or a power cut would."""
        self.agent.kill()

    def close(self):
        if self.agent:
            self.agent.stop()

    def put(self, name, content=b"some text\n"):
        """Drops a file; `name` is below the watched folder, as bytes or text."""
        path = os.path.join(os.fsencode(self.drop), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return Path(os.fsdecode(path))

    def job(self, part):
        """The newest job whose path holds `part`; None when there is none."""
        jobs = [job for job in self.get("jobs?limit=100") if part in job["path"]]
        return jobs[0] if jobs else None

    def ends(self, part, state, seconds=20):
        """Waits until a file is in a state; returns its job."""
        def reached():
            job = self.job(part)
            return job if job and job["state"] == state else None
        return until(reached, seconds, f"{part} is {state}")


class Station(Agent):
    """One agent that sends to a slow store and to a store that is not there, too."""

    def __init__(self, base, sandbox, secrets):
        super().__init__(base, secrets)
        # Where the route 'blocked' needs a folder.
        (self.library / "a-file").write_text("in the way\n")
        place = sandbox.place
        # MD5 is proved part by part, so that a file's page has parts to show.
        archive = sandbox.s3(public_url=f"{place['s3']}/{place['bucket']}", verify="md5")
        self.settings["destinations"] |= {
            "spiral": {
                "type": "r2", "api": place["spiral"], "dialect": "v1", "api_key": place["api_key"],
                "public_url": place["spiral"] + "/public", "bandwidth": "128KiB/s",
            },
            "archive": archive,
            "steady": archive | {"bandwidth": "1MiB/s", "parallel_parts": 1},
            # Nothing listens on the port of 'discard'.
            "away": {
                "type": "s3", "endpoint": "http://127.0.0.1:9", "bucket": "media", "access_key": "a", "secret_key": "b",
            },
        }
        self.settings |= {
            "limits": {"queue_warning": 20},
            "watch": {"settle": "200ms"},
            "routes": [
                {"name": "slow", "match": {"path": "slow/**"}, "to": "spiral"},
                {"name": "films", "match": {"path": "films/**"}, "to": "archive"},
                {"name": "steady", "match": {"path": "steady/**"}, "to": "steady"},
                {
                    "name": "blocked", "match": {"path": "blocked/**"}, "to": "library", "key": "a-file/{name}",
                    "retry": {"attempts": 1},
                },
                {"name": "away", "match": {"path": "away/**"}, "to": "away"},
                {"name": "papers", "match": {"path": "papers/**"}, "validate": {"extensions": ["pdf"]}, "to": "library"},
                {
                    "name": "twins", "match": {"path": "twins/**"}, "to": "library", "key": "twins/{name}", "dedupe": "skip",
                    "on_failure": "quarantine",
                },
                {"name": "rest", "to": "library", "key": "{dir}/{name}"},
            ],
        }


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


class Card:
    """A card: an ext4 file system in a file, with files by path. It gets into a reader by `insert`."""

    # EXT4_IOC_SHUTDOWN; 2 is without flushing the journal: every read of an open file fails from then on.
    SHUTDOWN, AT_ONCE = 0x8004587D, b"\2\0\0\0"

    def __init__(self, readers, label, files, megabytes=40):
        self.label, self.point = label, readers / label
        self.point.mkdir()
        self.image = readers.with_name(f"card{len(list(readers.iterdir()))}.image")
        with open(self.image, "wb") as image:
            image.truncate(megabytes << 20)
        run("mkfs.ext4", "-q", "-F", "-L", label, self.image)
        self.put(files)

    def put(self, files):
        """While it is in no reader."""
        elsewhere = self.image.with_suffix(".point")
        elsewhere.mkdir(exist_ok=True)
        run("mount", "-o", "loop", self.image, elsewhere)
        try:
            for name, content in files.items():
                path = elsewhere / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        finally:
            run("umount", elsewhere)

    def insert(self):
        run("mount", "-o", "loop,nosuid,nodev", self.image, self.point)

    def remove(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            run("umount", "-l", self.point)

    def pull(self):
        """Out of the reader while it is in use."""
        folder = os.open(self.point, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, self.SHUTDOWN, self.AT_ONCE)
        finally:
            os.close(folder)
        self.remove()


class CardStation(Agent):
    """One agent that copies cards to a folder and to a slow store."""

    # A person sees each step.
    RATE = "1MiB/s"

    def __init__(self, base, sandbox):
        super().__init__(base, True)
        self.readers, self.cards = base / "media", []
        self.readers.mkdir()
        self.settings["dashboard"]["kiosk_token"] = KIOSK
        self.settings["destinations"]["archive"] = sandbox.s3(bandwidth=self.RATE, parallel_parts=1)
        self.settings |= {
            "roots": [self.readers / "*/DCIM"], "watch": {"settle": "200ms"},
            "routes": [{"name": "cards", "to": ["library", "archive"], "key": "{volume}/{dir}/{name}"}],
        }

    @staticmethod
    def is_possible():
        """Whether this machine lets us make disks and mount them."""
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return os.geteuid() == 0 and bool(run("losetup", "--find"))
        return False

    def card(self, label, files, **more):
        card = Card(self.readers, label, files, **more)
        self.cards.append(card)
        return card

    def told(self, label):
        """What the agent says of a card; None while it says nothing."""
        return next((card for card in self.get("cards")["cards"] if card["name"] == label), None)

    def stands(self, label, verdict, seconds=40):
        """Waits for a verdict."""
        def reached():
            card = self.told(label)
            return card if card and card["verdict"] == verdict else None
        return until(reached, seconds, f"{label} is {verdict}", words=lambda: json.dumps(self.told(label), indent=1)[:3000])

    def stop(self):
        """It no longer answers, and its port stays open."""
        os.kill(self.agent.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.agent.pid, signal.SIGCONT)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.go_on()
        super().close()
        for card in self.cards:
            card.remove()


class FleetStation(Agent):
    """One of two agents of a fleet, with a PostgreSQL cluster of their own. The other one's name would be markup."""

    OTHER = "nas<img src=x onerror=alert(3)>"

    def __init__(self, base):
        super().__init__(base / "one", True)
        self.cluster = postgres.Cluster(base / "postgres")
        inlet("fleet", "init", "--url", self.cluster.url(), "--name", "studio", "--ttl", "12s")
        self.cluster.sql(f"CREATE ROLE {LOGIN} LOGIN IN ROLE inlet_agent")
        join = base / "fleet.join"
        join.touch(mode=0o600)
        join.write_text(inlet("fleet", "secret", "--url", self.cluster.url()))
        self.other = Agent(base / "two", False)
        share = base / "share"
        # Not empty: agents make no first marker where perhaps nothing is mounted.
        (share / "in").mkdir(parents=True)
        for one, name in ((self, "station-1"), (self.other, self.OTHER)):
            one.share = share
            one.settings["fleet"] = {
                "url": self.cluster.url(user=LOGIN), "name": name, "join_file": str(join), "patience": "2s",
            }
            one.settings["watch"] = {"settle": "200ms"}
            # Both send to one folder, so that equal names would collide.
            one.settings["destinations"] = {
                # Without a part in the fleet a folder is each machine's own.
                "library": {"type": "folder", "path": str(self.library), "fleet": {"slots": 64}},
            }
            one.settings["routes"] = [
                {
                    "name": "blocked", "match": {"path": "blocked/**"}, "to": "library", "key": "a-file/{name}",
                    "retry": {"attempts": 1},
                },
                {"name": "rest", "to": "library", "key": "{name}"},
            ]
        admin = base / "admin.url"
        admin.touch(mode=0o600)
        admin.write_text(self.cluster.url())
        self.settings["fleet"]["admin_url_file"] = str(admin)
        # Where the route 'blocked' needs a folder.
        (self.library / "a-file").write_text("in the way\n")

    @staticmethod
    def is_possible():
        return not postgres.missing()

    def start(self):
        super().start()
        self.other.start()
        until(lambda: all(one.get("status")["fleet"]["state"] == "live" for one in (self, self.other)), 40, "two live agents")
        until(lambda: len(self.get("fleet")["agents"]) == 2, 40, "both agents in the fleet's view")

    def media(self):
        """The share that both watch; None before the fleet knows it."""
        return next((place for place in self.get("fleet")["places"] if place["name"] == "media"), None)

    def ends_shared(self, name):
        """Drops a file in the share, and waits until one of them has delivered it."""
        (self.share / name).write_bytes(b"of all\n")
        until(lambda: (self.library / name).exists(), 60, f"{name} of the share is delivered")

    def agents(self):
        return {one["name"]: one for one in self.get("fleet")["agents"]}

    def close(self):
        self.other.close()
        super().close()
        self.cluster.__exit__()
