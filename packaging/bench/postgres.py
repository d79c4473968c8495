"""A PostgreSQL cluster of our own, pgbouncer before it, and lines to it that can be cut. As root they run as `postgres` or
`nobody`: PostgreSQL refuses root."""

import glob
import os
import pwd
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from process import Child, end, until
from report import Failed

USER = "inlet_admin_of_the_bench"
PACKAGES = "apt-get install postgresql pgbouncer"


def programs() -> Path | None:
    """The folder of the server's programs: where pg_config says, else the newest of Debian's; None without any."""
    found = []
    if shutil.which("pg_config"):
        said = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True)
        found = [Path(said.stdout.strip())]
    found += sorted((Path(path) for path in glob.glob("/usr/lib/postgresql/*/bin")),
                    key=lambda path: -int(path.parent.name) if path.parent.name.isdigit() else 0)
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


def missing() -> str:
    """Why there can be no cluster; empty when there can."""
    return "" if programs() else f"PostgreSQL's server programs are not there: {PACKAGES}"


def _account() -> list[str]:
    """What runs a command as another user, where this one is root."""
    if os.geteuid():
        return []
    for name in ("postgres", "nobody"):
        try:
            one = pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", f"--reuid={one.pw_uid}", f"--regid={one.pw_gid}", "--clear-groups"]
    raise Failed("PostgreSQL refuses root, and there is neither a user postgres nor nobody")


def give(folder: Path) -> None:
    """To that user; folders above it may be passed through."""
    if account := _account():
        uid, gid = (int(word.partition("=")[2]) for word in account[1:3])
        os.chown(folder, uid, gid)
        for above in folder.parents:
            if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o011)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Cluster(Child):
    """PostgreSQL with fsync on, on a port of its own. It ends with its context, and so do its files."""

    # What pg_is_in_recovery() says of one that is ready.
    READY = ("f",)

    def __init__(self, folder: Path, **settings: str) -> None:
        if not (found := programs()):
            raise Failed(missing())
        self.bin = found
        self.folder, self.port, self.settings = folder, free_port(), settings
        self.folder.mkdir(parents=True)
        give(self.folder)
        self.data = self.folder / "data"
        self._run("initdb", "-N", "-E", "UTF8", "--no-locale", "-A", "trust", "-U", USER, "-D", self.data)
        self.start()
        self.sql("CREATE DATABASE inlet ENCODING 'UTF8' TEMPLATE template0", database="postgres")

    def _run(self, program: str, *words: object, is_awaited: bool = True) -> str:
        done = subprocess.run([*_account(), str(self.bin / program), *map(str, words)], capture_output=True, text=True,
                              cwd="/", timeout=180)
        if done.returncode and is_awaited:
            raise Failed(f"{program}: {done.stderr.strip()[-800:]}\n{self.log()}")
        return done.stdout

    def log(self) -> str:
        path = self.folder / "log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-8:]) if path.exists() else ""

    def start(self) -> None:
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder,
                   "max_connections": 60, "shared_buffers": "256MB", "log_min_messages": "warning"} | self.settings
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._output = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([*_account(), str(self.bin / "postgres"), "-D", str(self.data), *words], cwd="/",
                                        stdout=self._output, stderr=self._output, start_new_session=True)
        until(self.answers, 120, "PostgreSQL", 0.05, self.process, self.log)

    def answers(self) -> bool:
        """As a server that may be written to: one that is still reading its log says that it is not."""
        done = subprocess.run([self.bin / "psql", "-XAtqc", "SELECT pg_is_in_recovery()", self.url("postgres")],
                              capture_output=True, text=True)
        return done.stdout.strip() in self.READY

    def stop(self, how: str = "fast") -> None:
        """`fast`, or `immediate`, as a crash."""
        self._run("pg_ctl", "stop", "-D", self.data, "-m", how, "-t", 60, is_awaited=False)
        end(self.process)
        self._output.close()

    def __exit__(self, *failure: object) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "inlet", user: str = USER, port: int = 0) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def sql(self, text: str, database: str = "inlet", user: str = USER) -> list[list[str]]:
        """The rows of a statement."""
        done = subprocess.run([self.bin / "psql", "-XAtq", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", self.url(database, user)],
                              input=text, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise Failed(f"psql: {done.stderr.strip()[-800:]}")
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def one(self, text: str) -> str:
        return self.sql(text)[0][0]

    def errors(self, statements: Sequence[str], user: str) -> list[str]:
        """What each statement that fails says, with its SQLSTATE; each is a transaction of its own."""
        text = "\\set VERBOSITY verbose\n" + "\n".join(f"{statement};" for statement in statements)
        done = subprocess.run([self.bin / "psql", "-XAtq", self.url(user=user)], input=text, capture_output=True, text=True,
                              timeout=600)
        return [line.partition("ERROR:  ")[2] for line in done.stderr.splitlines() if "ERROR:  " in line]

    def backup(self) -> Path:
        """A base backup that needs nothing else."""
        place = self.folder / f"backup-{time.monotonic_ns()}"
        self._run("pg_basebackup", "-D", place, "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", self.port, "-U", USER)
        return place

    def restore(self, backup: Path, is_promoted: bool) -> None:
        """Puts a backup back: on its own timeline, or on a new one."""
        self.stop("immediate")
        shutil.rmtree(self.data)
        subprocess.run(["cp", "-a", backup, self.data], check=True)
        if is_promoted:
            (self.data / "recovery.signal").touch()
            give(self.data / "recovery.signal")
            self.settings = {**self.settings, "restore_command": "false"}
        self.start()


class Standby(Cluster):
    """Follows another cluster as a stream, until it is promoted."""

    READY = ("t", "f")

    def __init__(self, primary: Cluster, folder: Path) -> None:
        self.bin, self.settings = primary.bin, primary.settings
        self.folder, self.port, self.data = folder, free_port(), folder / "data"
        folder.mkdir(parents=True)
        give(folder)
        self._run("pg_basebackup", "-R", "-D", self.data, "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", primary.port,
                  "-U", USER)
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-D", self.data, "-w", "-t", 60)


class Pooler(Child):
    """pgbouncer in transaction mode, with few connections to the server."""

    @staticmethod
    def program() -> str | None:
        return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __init__(self, cluster: Cluster, clients: int = 3000, size: int = 20) -> None:
        if not (program := self.program()):
            raise Failed(f"pgbouncer is not there: {PACKAGES}")
        self.port = free_port()
        folder = cluster.folder / "pooler"
        folder.mkdir()
        give(folder)
        settings = folder / "pgbouncer.ini"
        settings.write_text(f"""[databases]
* = host=127.0.0.1 port={cluster.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {size}
max_client_conn = {clients}
query_wait_timeout = 10
logfile = {folder}/log
""")
        (folder / "users").write_text(f'"{USER}" ""\n"inlet_station" ""\n')
        # A client and a server connection each: the usual 1,024 descriptors are too few for a thousand agents.
        limit = ["prlimit", f"--nofile={min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])}"]
        self.process = subprocess.Popen([*limit, *_account(), program, "-q", str(settings)], cwd="/", stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        until(self._listens, 20, "pgbouncer", 0.05, self.process)

    def _listens(self) -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port)) == 0


class Line:
    """A way to a port of this machine. While it is cut, bytes go nowhere and nothing is closed, as when a cable is pulled."""

    def __init__(self, target: int) -> None:
        self._target, self._flows, self._ended = target, threading.Event(), False
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._flows.clear()

    def mend(self) -> None:
        """What was open before the cut is gone, as after a while it is for both ends."""
        self._close()
        self._flows.set()

    def end(self) -> None:
        self._ended = True
        self._listener.close()
        self._close()
        self._flows.set()

    def _close(self) -> None:
        for one in list(self._sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self) -> None:
        while not self._ended:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=[inner], daemon=True).start()

    def _connect(self, inner: socket.socket) -> None:
        self._sockets.add(inner)
        self._flows.wait()
        try:
            outer = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            self._drop(inner)
            return
        outer.settimeout(None)
        self._sockets.add(outer)
        for one, other in ((inner, outer), (outer, inner)):
            threading.Thread(target=self._pump, args=[one, other], daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                self._flows.wait()
                other.sendall(data)
        except OSError:
            pass
        self._drop(one)
        self._drop(other)

    def _drop(self, one: socket.socket) -> None:
        self._sockets.discard(one)
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()
