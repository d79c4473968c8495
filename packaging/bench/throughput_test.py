"""What judges throughput.py, and what its figures rest on: the sink, its table, the order of rounds, the cost of a client."""

import argparse
import concurrent.futures
import contextlib
import io
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import bench
import chart
import clients
import groups
import perf
import process
import report
import servers
from clients import Load
from expecting import expect, failure
from report import GIB, MIB, Failed
from scenarios import throughput

R2, S3, SENT = "inlet run r2", "inlet run s3", "inlet send s3"


def sample(seconds: float, cpu: float = 1.0, **more: float) -> dict[str, float]:
    return {"seconds": seconds, "cpu": cpu, "own": 20.0, "sink": 2.0, "puts": 100, "connections": 9, "handshakes": 0,
            "resumed": 0} | more


def group(size: int, rounds: dict[str, Any], scheme: str = "http", verify: str = "default", delay: int = 0,
          count: int = 2) -> groups.Group:
    """A number of seconds is a round."""
    listed = {name: value if isinstance(value, list) else [sample(value)] for name, value in rounds.items()}
    return {"load": "load", "count": count, "size": size, "scheme": scheme, "verify": verify, "delay": delay, "settings": {},
            "clients": listed}


def target(one: groups.Group, what: str, reached: bool | None | str) -> None:
    rows = {row.what: row for row in groups.target_rows(one)}
    expect(f"{what} of {one}", rows[what].reached if what in rows else "no row", reached)


def speed_targets() -> None:
    for scheme, least in (("http", 1.2), ("https", 1.0)):
        for ours, reached in ((2 / least - 0.01, True), (2 / least + 0.01, False)):
            target(group(GIB, {R2: ours, "curl": 2}, scheme, "size"), f"{R2}, of curl's bytes/s", reached)
    for rounds in ({R2: 2}, {"curl": 2}):
        target(group(GIB, rounds, verify="size"), f"{R2}, of curl's bytes/s", None)
    for verify in ("default", "md5"):
        for ours, reached in ((0.99, True), (1.01, False)):
            target(group(GIB, {S3: ours, "s5cmd": 2}, verify=verify), f"{S3}, of s5cmd's bytes/s", reached)
    for size, delay, scheme, least in ((4096, 0, "http", 2.5), (16 << 10, 0, "http", 2.5), (16 << 10, 20, "http", 1.5),
                                       (16 << 10, 100, "http", 1.5), (256 << 10, 0, "http", 1.5), (4096, 0, "https", 1.5)):
        for ours, reached in ((3 / least - 0.01, True), (3 / least + 0.01, False)):
            target(group(size, {S3: ours, "s5cmd": 3}, scheme, delay=delay), f"{S3}, of s5cmd's files/s", reached)
    target(group(99, {S3: 1}), f"{S3}, of s5cmd's files/s", None)


def resource_targets() -> None:
    for count, size, most in ((50_000, 4096, 0.45), (5_000, 16 << 10, 1.0), (1, GIB, 0.5)):
        for cpu, reached in ((2 * most, True), (2 * most + 0.01, False)):
            one = group(size, {S3: [sample(1, cpu)], "s5cmd": [sample(1, 2)]}, count=count)
            target(one, f"{S3}, of s5cmd's CPU time", reached)
        target(group(size, {}, count=count), f"{S3}, of s5cmd's CPU time", None)
    for name in (S3, SENT):
        for own, reached in ((24.0, True), (24.1, False)):
            target(group(GIB, {name: [sample(1), sample(1, own=own)]}), f"{name}, own memory", reached)
    target(group(GIB, {}), f"{S3}, own memory", None)
    for full, reached in ((4, True), (5, False)):
        one = group(GIB, {S3: [sample(1, handshakes=full + 3, resumed=3)]}, "https")
        target(one, f"{S3}, full TLS handshakes", reached)
    own = groups.target_rows(group(GIB, {S3: 1}, verify="crc32c"))
    expect("a check of our own", [row.what for row in own], [f"{S3}, own memory"])
    bound = groups.target_rows(group(4096, {S3: 1, "s5cmd": 3, "floor": 0.1}))
    expect("the floor is no target", [row.what for row in bound if "floor" in row.what], [])


def figures() -> None:
    middle = groups.summary(group(GIB, {R2: [sample(2), sample(1), sample(4)]}), R2)
    expect("summary", [middle[key] for key in ("speed", "least", "most")], [GIB, GIB / 2, 2 * GIB])
    old, new = group(1, {}), group(1, {R2: 1})
    expect("merged", throughput.merged([old, group(1, {}, "https")], [new]), [group(1, {}, "https"), new])
    drawn = ElementTree.fromstring(chart.draw([group(GIB, {R2: [sample(2), sample(4)], "curl": 2, "s5cmd": []}),
                                               group(9, {S3: 1, "<odd & name>": 2})]))
    lengths = [float(one.get("width")) for one in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    words = {one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")}
    expect("bars", (len(lengths), round(lengths[2] / lengths[3], 1)), (4, 2.0))
    expect("words", [one in words for one in ("s5cmd", "<odd & name>", "0.75 GiB/s", "2 files/s")], [False, True, True, True])


def measured(rounds: dict[str, list[Any]], variants: dict[str, Any] | None = None) -> tuple[Any, groups.Group, list[str]]:
    """A measurement of two rounds whose clients take the seconds that are listed; a word is why one fails. And who sent."""
    def one_round(client: clients.Client, load: Load, one: groups.Group, is_hashed: bool = False) -> dict[str, float]:
        now, sent = rounds[client.send or client.name].pop(0), order.append(client.send or client.name)
        if isinstance(now, str):
            raise Failed(now)
        return sample(now)

    order: list[str] = []
    run = throughput.Measurement(Path(), options(["--rounds", "2", "--peers", "curl"]))
    run.clients = [clients.Client(name, None, variants=variants or {}) for name in rounds if name not in (variants or {})]
    run.one_round = one_round
    with contextlib.redirect_stdout(io.StringIO()):
        return run, run.measure(Load("2x16KiB"), Load("2x16KiB"), "http", "size"), order


def failures() -> None:
    """Peers that fail are left out; that inlet fails at something is told, and is no success."""
    for ours, s5cmd, failed, code in (
            ((1, 1, 1), (1, 3, 3), 0, 0), ((1, 1, 1), ("no",), 0, 3), (("no",), (1, 3, 3), 1, 1),
            ((1, 1, "no"), (1, 3, 3), 1, 1), ((1, 9, 9), (1, 3, 3), 0, 1)):
        run, found, _ = measured({S3: list(ours), "s5cmd": list(s5cmd)})
        rows = [*groups.target_rows(found), *run.failures]
        expect(f"{ours} {s5cmd}", (len(run.failures), report.exit_code(rows)), (failed, code))


def orders() -> None:
    """Rounds go back and forth, and of a peer's variants the fastest goes on."""
    _, _, order = measured({S3: [1] * 3, "s5cmd": [1] * 3})
    expect("back and forth", order, [S3, "s5cmd", S3, "s5cmd", "s5cmd", S3])
    # A variant's `send` is its name here.
    seconds = {"s5cmd": [1], "16 workers": [3, 8, 8], "64 workers": [2, 7, 6], "256 workers": [4]}
    _, found, _ = measured(seconds, {name: name for name in seconds if "workers" in name})
    expect("the fastest", (found["settings"], [one["seconds"] for one in found["clients"]["s5cmd"]]),
           ({"s5cmd": "64 workers"}, [7, 6]))


def sums() -> None:
    """What the sink is told: every way to cut a file, and what it hashes to."""
    expect("a small file", clients.pieces(4096), [(0, 0, 4096)])
    found = clients.pieces(60 * MIB)
    for piece in ((0, 0, 60 * MIB), (8, 56 * MIB, 4 * MIB), (1, 0, 50 * MIB), (2, 50 * MIB, 10 * MIB)):
        expect(f"{piece} of 60 MiB", piece in found, True)
    # 66 = 50 + 16 = 4 x 16 + 2: the second part of 16 MiB begins at 16 or at 50.
    expect("cut in two ways", failure(lambda: clients.pieces(66 * MIB)).startswith("part 2 of 16,777,216 bytes"), True)
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "f").write_bytes(b"<123456789>")
        expect("sums", clients.sums_of(path, 1, 9), "25f9e794323b453885f5181f1b624d0b e3069283 ae8b14860a799888")


def put(sink: servers.Sink, path: str, body: bytes = b"", method: str = "PUT", **headers: str) -> tuple[int, str]:
    """(status, the checksum that it confirms or the answer's body)"""
    asked = urllib.request.Request(sink.url + path, data=body if method in ("PUT", "POST") else None, method=method,
                                   headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            said = answer.headers.get("x-amz-checksum-crc64nvme") or answer.headers.get("etag")
            return answer.status, said or answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def refusals() -> None:
    """The sink: right checksums are confirmed and wrong ones refused, of bodies that it knows and of others."""
    nine, right, wrong = b"123456789", "rosUhgp5mIg=", "rosUhgp5mIQ="
    known = "known.bin 0 9 25f9e794323b453885f5181f1b624d0b e3069283 ae8b14860a799888\n"
    with tempfile.TemporaryDirectory() as folder:
        (table := Path(folder) / "sums").write_text(known)
        with servers.Sink(etag="md5", checksums="compare", sums=table) as sink:
            for name in ("known.bin", ".inlet-check/other"):
                path = f"/bench/{name}"
                expect(f"a wrong one of {name}", put(sink, path, nine, x_amz_checksum_crc64nvme=wrong)[0], 400)
                expect(f"{name} is not there", put(sink, path, method="HEAD")[0], 404)
                expect(f"a right one of {name}", put(sink, path, nine, x_amz_checksum_crc64nvme=right), (200, right))
                expect(f"the ETag of {name}", put(sink, path, nine), (200, '"25f9e794323b453885f5181f1b624d0b"'))
                expect(f"a wrong MD5 of {name}", put(sink, path, nine, content_md5="AAAAAAAAAAAAAAAAAAAAAA==")[0], 400)
                gone = [put(sink, path, method=method)[0] for method in ("DELETE", "HEAD")]
                expect(f"{name} is removed", gone, [204, 404])
            expect("only the other one was hashed", sink.stats()["hashed"], 4 * len(nine))
            whole(sink, nine, right, wrong)
        with servers.Sink() as sink:
            expect("a store that does not compare", put(sink, "/bench/a", nine, x_amz_checksum_crc64nvme=wrong), (200, wrong))


def whole(sink: servers.Sink, nine: bytes, right: str, wrong: str) -> None:
    """The checksum of a whole object, from those of its parts."""
    put(sink, "/bench/m?uploads", method="POST", x_amz_checksum_algorithm="CRC64NVME", x_amz_checksum_type="FULL_OBJECT")
    put(sink, "/bench/m?partNumber=1&uploadId=upload-1", nine, x_amz_checksum_crc64nvme=right)
    parts = b"<Part><PartNumber>1</PartNumber><ETag>25f9e794323b453885f5181f1b624d0b</ETag></Part>"
    ended = [put(sink, "/bench/m?uploadId=upload-1", parts, "POST", x_amz_checksum_crc64nvme=one) for one in (wrong, right)]
    expect("a wrong one of the whole", ended[0][0], 400)
    expect("a right one of the whole", f"<ChecksumCRC64NVME>{right}</ChecksumCRC64NVME>" in ended[1][1], True)


def delays() -> None:
    """Answers are held back at the same time: twenty do not take twenty times as long as one."""
    with servers.Sink(delay=100) as sink, concurrent.futures.ThreadPoolExecutor(20) as pool:
        began = time.monotonic()
        list(pool.map(lambda number: put(sink, f"/bench/{number}", b"x"), range(20)))
        seconds = time.monotonic() - began
    expect(f"20 answers of 100 ms in {seconds:.2f} s", 0.1 <= seconds < 1, True)


def families() -> None:
    """What a child takes counts as its parent's, while it lives and when it has been awaited."""
    busy = "import time\nwhile time.process_time() < 0.3: pass\n"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        process.until(lambda: len(process.family(parent.pid)) == 2, what="a child")
        expect("own memory of both", process.own_memory(parent.pid)["own"] > process.field(
            f"/proc/{parent.pid}/status", "RssAnon") / 1024, True)
        parent.stdout.readline()
        # One that has ended since the family was listed ends no measurement.
        listed, process.family = process.family, lambda pid: [pid, gone.pid]
        (gone := subprocess.Popen(["true"])).wait()
        expect("own memory beside one that has ended", process.own_memory(parent.pid)["own"] > 0, True)
        process.family = listed
        expect("CPU time of a child that was awaited", process.cpu_seconds(parent.pid) >= 0.3, True)


def profiles() -> None:
    """What perf report says."""
    text = "\n    12.50%  [k] copy_user\n    61.25%  [.] Foo.bar(_: Int) -> Bool\n\n"
    expect("shares", perf.read_shares(text), [(61.25, "[.] Foo.bar(_: Int) -> Bool"), (12.5, "[k] copy_user")])


def options(words: list[str]) -> argparse.Namespace:
    return bench.parse(throughput, words)


def loads() -> None:
    wanted = {"a": (3, "00"), "b": (4, "-")}
    for found, count in (({"a": (3, "00"), "b": (4, "11")}, 0), ({"a": (3, "-"), "b": (4, "-")}, 0), ({"a": (3, "00")}, 1),
                         ({"a": (3, "01"), "b": (4, "-")}, 1), ({"a": (2, "00"), "b": (4, "-")}, 1),
                         (wanted | {"c": (1, "-")}, 1), ({}, 2)):
        expect(f"differences of {found}", len(clients.differences(wanted, found)), count)
    load = Load("2x16KiB")
    load.wanted = wanted
    for names, left, is_good in ((wanted, 0, True), ({"a": (3, "00")}, 0, False), (wanted, 1, False)):
        try:
            load.check("inlet", SimpleNamespace(objects=lambda: names, stats=lambda: {"open_uploads": left}))
            expect(f"{names}, {left} open", True, is_good)
        except SystemExit as ended:
            expect(f"{names}, {left} open: {ended}", False, is_good)
    load = Load("30x256MiB")
    expect("a load", (load.count, load.size, load.is_big, Load("5000x16KiB").is_big), (30, 256 << 20, True, False))
    expect("plans", [len(throughput.plan(options(words))) for words in ([], ["--all"])], [len(throughput.SHORT), 132])
    expect("a chosen plan", throughput.plan(options(["--loads", "3x8MiB", "--verify", "md5,size", "--delay", "20"])),
           [("3x8MiB", "http", "md5", 20), ("3x8MiB", "http", "size", 20)])


TESTS = [speed_targets, resource_targets, figures, failures, orders, sums, refusals, delays, families, profiles, loads]
