"""What judges a run, tried on what it must accept and on what it must not; and that every scenario finds what it imports."""

import contextlib
import importlib
import io
import os
import random
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench
import fleet_alone
import judge
import process
import report
import stations
import takeovers
import throughput_test
from agent import HERE, opened
from expecting import expect, failure
from meddler import Book, Version
from report import MIB, Row
from scenarios import bandwidth, binary, faults, fleet, fuzz, scale, soak
from servers import Request
from shares import Share


def scenarios() -> None:
    for path in sorted((HERE / "scenarios").glob("*.py")):
        scenario = importlib.import_module(f"scenarios.{path.stem}")
        bench.parse(scenario, ["HEAD", "FILE"] if path.stem == "upgrade" else [])
        expect(f"{path.stem}.sh", (HERE / f"{path.stem}.sh").exists(), True)


def outcome() -> None:
    good, bad, open_ = Row("a", "1", "2"), Row("b", "1", "2", False), Row("c", "1", "2", None)
    failed = Row("d", "", "x", False, is_failure=True)
    for rows, is_report, code in (
            ([good], False, 0), ([good, bad], False, 1), ([good, open_], False, 3), ([open_, bad], False, 1),
            ([good, bad, open_], True, 0), ([good, failed], True, 1), ([report.none("lost", 1)], True, 1),
            ([report.none("lost", 0), bad], True, 0), ([], False, 0)):
        expect(f"exit code of {rows}", report.exit_code(rows, is_report), code)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        report.conclude("targets", [good, bad, open_])
    for words in ("1 of 3 targets missed:\n  b: 1, wanted 2", "1 of 3 targets not measured:\n  c: 1"):
        expect(words, words in said.getvalue(), True)
    expect("at most", [report.bounded("a", value, 40).reached for value in (40.0, 40.1, None)], [True, False, None])
    expect("at least", [report.bounded("a", value, 40, is_least=True).reached for value in (40.0, 39.9)], [True, False])


def waiting() -> None:
    values, ended = iter([0, "", 7]), subprocess.Popen(["true"])
    expect("the first true value", process.until(lambda: next(values), 9, "value", 0), 7)
    expect("the last one", process.until(lambda: 0, 0, every=0), 0)
    expect("time is up", failure(lambda: process.until(list, 0, "end", 0, words=lambda: "why")), "no end within 0 s:\nwhy")
    expect("it ended", failure(lambda: process.until(list, 60, "end", process=ended)), "no end before it ended with 0:\n")
    expect("ended by SIGTERM", process.end(subprocess.Popen(["sleep", "60"])), -15)
    worker = process.Worker()
    worker.work = lambda: worker.ended.wait() and bench.some_of(["a"])("b,a")
    worker.start()
    expect("what a worker failed with", failure(worker.stop), "b is none of a")
    expect("a spread", report.figure("", [3.0, 1.0, 2.0], " s").measured, "2.0 s (1.0-3.0)")


# crash


def kinds(function: Any, *arguments: Any) -> dict[str, int]:
    found = judge.crash_findings()
    function(found, *arguments)
    return dict(found.counts)


def stores() -> None:
    wanted = {"a": "1", "b": "2"}
    for objects, faults_ in (
            ([("a", "1"), ("b", "2")], {}), ([("a", "1")], {"lost": 1}), ([("a", "1"), ("b", "9")], {"partial": 1}),
            ([("a", "1"), ("b", "2"), ("b", "2")], {"duplicated": 1}),
            ([("a", "1"), ("b", "2"), ("b_2", "2")], {"duplicated": 1}), ([("a", "1"), ("b", "2"), ("c", "7")], {"foreign": 1})):
        expect(f"by_key {objects}", kinds(judge.by_key, "x", wanted, objects), faults_)
    # One that is not whole is no reason to leave it out.
    expect("an unreadable list", kinds(judge.by_key, "x", {"u": {"a.mp4": "1"}}, [("u", None)]), {"partial": 1})
    for contents, faults_ in ((["1", "2"], {}), (["1"], {"lost": 1}), (["1", "2", "2"], {"duplicated": 1}),
                              (["1", "2", "3"], {"partial": 1})):
        expect(f"by_content {contents}", kinds(judge.by_content, "x", wanted, contents), faults_)


def services() -> None:
    done = {"id": "j", "video_key": "v", "status": "completed"}
    for jobs, charges, faults_ in (([done], 1, {}), ([done, done], 2, {"duplicated": 2}),
                                   ([done | {"status": "pending"}], 1, {"left open": 1}), ([], 0, {"lost": 1, "duplicated": 1})):
        said = {"videos": [{"key": "v", "sha256": "1"}], "jobs": jobs, "charges": charges}
        expect(f"videos {jobs}", kinds(judge.videos, {"clip": "1"}, said), faults_)
    whole = {"product.json": "9", "a.png": "1", "b.png": "2"}
    for made, fetched, faults_ in (
            ("12", whole, {}), ("12", {"a.png": "1", "b.png": "2"}, {"lost": 1}),
            ("12", {"product.json": "9", "a.png": "1"}, {"lost": 1}),
            ("12", whole | {"b.png": "3"}, {"lost": 1, "partial": 1}), ("12", whole | {"c.png": "2"}, {"duplicated": 1}),
            ("", {"product.json": "9"}, {"lost": 1})):
        expect(f"pictures {fetched}", kinds(judge.pictures, "j", list(made), fetched), faults_)
    good = {"key": "s", "model": "http://h/public/d/s.glb"}
    for held, faults_ in (([good], {}), ([], {"lost": 1}), ([good, good], {"duplicated": 1}),
                          ([good | {"model": None}], {"partial": 1}), ([good, {"key": "t", "model": "x"}], {"foreign": 1})):
        expect(f"spaces {held}", kinds(judge.spaces, {"s": "d/s.glb"}, {"spaces": held}), faults_)


def books() -> None:
    good = {"path": "/r/a", "state": "delivered"}
    for rows, count in (([good], 0), ([], 1), ([good, good], 1), ([good | {"state": "failed"}], 1),
                        ([good, good | {"path": "/r/b"}], 1)):
        expect(f"receipts {rows}", kinds(judge.receipts, Path("/r"), ["a"], rows).get("receipts", 0), count)
    row = good | {"receipt_file": "/s/1.json"}
    for asked, rows, files, count in (
            ({"/r/a"}, [row], {"/s/1.json": row}, 0), ({"/r/a"}, [row], {}, 1), ({"/r/a"}, [row], {"/s/1.json": None}, 1),
            ({"/r/a"}, [row], {"/s/1.json": good}, 1), ({"/r/a"}, [row], {"/s/1.json": row, "/s/2.json": row}, 1),
            ({"/r/a", "/r/b"}, [row, row | {"path": "/r/b"}], {"/s/1.json": row}, 1),
            ({"/r/a"}, [good], {}, 1), (set(), [row], {"/s/1.json": row}, 2)):
        expect(f"receipt files of {rows} in {files}", kinds(judge.receipt_files, asked, rows, files).get("receipts", 0), count)
    status = {"seen": 3, "ignored": 1, "pending": 0, "files": {"delivered": 2, "failed": 0, "pending": 0}}
    failed = status | {"files": {"delivered": 1, "failed": 1, "pending": 0}}
    for said, files, count in ((status, 2, 0), (status | {"seen": 4}, 2, 1), (status, 3, 1), (failed, 1, 1)):
        expect(f"balance {said}", kinds(judge.balance, said, files).get("balance", 0), count)


def logs() -> None:
    def line(event: str, job: int, size: int = 0) -> dict[str, Any]:
        return {"event": event, "job": job, "destination": "d", "size": size}

    once = [[line("job.finished", 1)], [line("job.finished", 2)]]
    expect("finished once", kinds(judge.finished, once), {})
    expect("finished twice", kinds(judge.finished, [*once, [line("job.finished", 1)]]), {"finished twice": 1})
    run = [line("job.started", 1, 10), line("job.started", 2, 700), line("job.delivered", 1), line("job.started", 3, 30),
           line("job.waiting", 3)]
    expect("in flight", judge.in_flight(run), {(2, "d"): 700})
    expect("allowance", judge.allowance([run, run, run], part=500), 1000)
    expect("allowance of the large", judge.allowance([run, [line("job.started", 4, 9)], run], part=500, above=9), 500)
    early = [{"event": "agent.started"}]
    expect("killed early", judge.killed_early([early, [*early, {"event": "agent.ready"}], []]), 1)


# faults


def scene(*more: Version, **changes: Any) -> faults.Scene:
    """Two delivered files, of which a route deleted one; and one that its writer removed before it was sent. And `more`."""
    book = Book()
    for path, digest in (("a", "1"), ("b", "2"), ("c", "3")):
        book.wrote(Version(path, digest, 5, 1))
    book.left("c", is_gone=True)
    for version in more:
        book.wrote(version)
    jobs = {"a": ["delivered"], "b": ["delivered"], "c": ["gone"]}
    status = {"health": {"state": "ok", "sentence": "All is well.", "findings": []}, "files": {"delivered": 2, "gone": 1}}
    given = {"held": ("12", "12"), "disk": {"a": "1"}, "jobs": {}, "status": status} | changes
    held = dict(zip(("library", "s3"), map(Counter, given["held"])))
    return faults.Scene(book, held, given["disk"], jobs | given["jobs"], given["status"])


def meddling() -> None:
    trouble = {"health": {"sentence": "Trouble", "findings": [{"about": "files"}]}, "files": {"failed": 1}}
    root = {"health": {"sentence": "Trouble", "findings": [{"about": "root"}]}, "files": {}}
    waiting = {"health": {"sentence": "1 file waiting: r2 is down.", "findings": []}, "files": {"pending": 1}}
    untrue = {"health": {"sentence": "All is well.", "findings": []}, "files": {"pending": 1}}
    new, edited, known = (Version(*values) for values in (("d", "4", 5, 1), ("a", "4", 5, 2), ("a", "4", 5, 1)))
    there = {"a": "1", "d": "4"}
    cases = [
        ("all delivered", scene(), {}),
        ("gone twice, left once", scene(jobs={"c": ["gone", "gone"]}), {"gone": 1, "well": 1}),
        ("gone, though it is there", scene(jobs={"a": ["delivered", "gone"]}), {"gone": 1, "well": 1}),
        ("twice under two names", scene(held=("112", "12")), {"twice": 1}),
        ("twice, by two files", scene(Version("d", "1", 5, 1), disk={"a": "1", "d": "1"}, held=("112", "112")), {}),
        ("a mixture", scene(held=("129", "12")), {"torn": 1}),
        ("what was removed, delivered", scene(held=("123", "12")), {}),
        ("deleted, with one proof of two", scene(held=("12", "1")), {"no proof": 1}),
        ("deleted, with none", scene(held=("1", "1")), {"no proof": 1}),
        ("in the archive, unproved", scene(new, disk={"a": "1", ".inlet/done/d": "4"}), {}),
        ("nobody saw it", scene(new, disk=there), {"missed": 1, "well": 1}),
        ("seen, and waiting", scene(new, disk=there, jobs={"d": ["pending"]}, status=waiting), {}),
        ("seen, and waiting under all is well", scene(new, disk=there, jobs={"d": ["pending"]}, status=untrue), {"well": 1}),
        ("failed, and said", scene(new, disk=there, jobs={"d": ["failed"]}, status=trouble), {}),
        ("missed while another failed", scene(new, disk=there, status=trouble), {"missed": 1}),
        ("in a folder that is said to be away", scene(new, disk=there, status=root), {}),
        ("gone for good, and there", scene(new, disk=there, jobs={"d": ["gone"]}, status=trouble), {"gone": 2, "missed": 1}),
        ("edited and delivered", scene(edited, disk={"a": "4"}, held=("124", "124")), {}),
        ("edited and not seen", scene(edited, disk={"a": "4"}), {"missed": 1, "well": 1}),
        ("edited under its size and time after its delivery", scene(known, disk={"a": "4"}), {}),
        ("and deleted then", scene(known, disk={}), {"no proof": 1}),
    ]
    for what, one, wanted in cases:
        expect(what, dict(faults.judge(one).counts), wanted)
    expect("kinds without a case", set(faults.judge(scene()).kinds) - {kind for _, _, wanted in cases for kind in wanted}, set())


# The others


def rates() -> None:
    for rate, value in (("100KiB/s", 102_400), ("1.5MiB/s", 1_572_864), ("1GiB/s", 1 << 30)):
        expect(rate, bandwidth.bytes_a_second(rate), value)
    noon = 1_767_268_810
    for now, lead, wanted in ((noon, 20, (noon + 50, "12:01")), (noon, 50, (noon + 110, "12:02")),
                              (noon + 12 * 3600 - 50, 15, (noon + 12 * 3600 - 10, "00:00"))):
        expect(f"next_edge({now}, {lead})", bandwidth.next_edge(now, lead), wanted)
    expect("files_for", bandwidth.files_for(["30MiB/s"], 6) * bandwidth.BODY >= 390 << 20, True)
    for first, second, connections, wanted in ((10, 10, 64, [True] * 3), (12, 8, 64, [True, True, False]),
                                               (10, 10, 63, [True, False, True]), (11, 10.1, 64, [False, True, True]),
                                               (0, 0, 0, [False] * 3)):
        found = bandwidth.Measured({"first": first * MIB, "second": second * MIB}, connections)
        expect(f"{found}", [row.reached for row in bandwidth.all_rows("20MiB/s", found)], wanted)


def growth() -> None:
    times = [5.0 * number for number in range(120)]
    noise = [((number * 7919) % 101 - 50) * (8 << 10) for number in range(120)]
    flat = [(when, 40 * MIB + wild) for when, wild in zip(times, noise)]
    leak = [(when, value + when * 20_000) for when, value in flat]
    spike = [(when, 40 * MIB + (30 * MIB if when == 250 else 0)) for when in times]
    hours = [(60.0 * number, 40 * MIB + 60.0 * number * 600) for number in range(240)]
    for name, points, grows in (("flat", flat, False), ("leak", leak, True), ("spike", spike, False),
                                ("2 MiB an hour", hours, True)):
        expect(name, soak.slope(points) > soak.bound(points), grows)
    expect("slope", abs(soak.slope(leak) - 20_000) < 2000, True)
    expect("settled", len(soak.settled(flat)), 90)
    expect("steps", [soak.step(list(enumerate(values))) for values in ((20, 51, 20, 20, 21, 52), (9, 9, 15))], [1, 6])


def memory() -> None:
    figures_ = iter([{"own": 10.0, "files": 20.0}, {"own": 15.0, "files": 10.0}, {"own": 12.0, "files": 4.0}])
    with contextlib.suppress(StopIteration), process.Highest(lambda: next(figures_, {}), every=0.001) as peak:
        time.sleep(0.05)
    expect("highest", peak.most, {"own": 15, "files": 20})
    own = process.memory(os.getpid())
    expect(f"own memory {own}", 0 < own["own memory (RssAnon)"] < own["seen at most"] <= own["VmHWM"] + 1, True)


def journals() -> None:
    """Two files become six, each with a delivery of its own key."""
    database = sqlite3.connect(":memory:")
    database.executescript("""
        CREATE TABLE file (id INTEGER PRIMARY KEY, path);
        CREATE TABLE delivery (id INTEGER PRIMARY KEY, file_id, key UNIQUE);
        CREATE TABLE receipt (id INTEGER PRIMARY KEY, file_id, state);
        INSERT INTO file VALUES (1, 'a'), (2, 'b');
        INSERT INTO delivery VALUES (1, 1, 'a'), (2, 2, 'b');
        INSERT INTO receipt VALUES (1, 1, 'done'), (2, 2, 'done');""")
    scale.multiply(database, 6)
    expect("rows", [scale.one(database, f"SELECT count(*) FROM {table}") for table in scale.KEPT], [6, 6, 6])
    paths = database.execute("SELECT path FROM file JOIN delivery ON file.id = file_id WHERE key = 'b-2'").fetchall()
    expect("paths", paths, [("b",)])
    expect("of_best", scale.of_best({1: 1.0, 2: 2.0, 4: 1.5}), {1: 1.0, 2: 1.0, 4: 0.75})


def fleets() -> None:
    """A fleet of two stations and a share with a store and receipts that are made up."""
    one, two, other = ("station-1", "a.mov"), ("station-2", "a.mov"), ("station-2", "b.mov")
    ours = ("media", "keep/a.mov")
    sources = [stations.Source(*name, 5, frozenset([md5]))
               for name, md5 in ((one, "11"), (two, "22"), (other, "33"), (ours, "44"))]
    right = [("a.mov", 5, "11"), ("a_2.mov", 5, "22"), ("b.mov", 5, "33"), ("a_3.mov", 5, "44")]

    def judged(listing: list[tuple[str, int, str]], second: str = "a_2.mov") -> tuple[int, ...]:
        def station(name: str, *rows: tuple[str, str]) -> SimpleNamespace:
            # Both have a receipt of the share's file: one took over its finishing.
            found = [{"path": path, "deliveries": [{"key": key}]} for path, key in (*rows, ("/share/keep/a.mov", "a_3.mov"))]
            return SimpleNamespace(name=name, receipts=lambda: found, has=lambda path: path.startswith("/drop/"))

        agents = [station("station-1", ("/drop/a.mov", "a.mov")),
                  station("station-2", ("/drop/a.mov", second), ("/drop/b.mov", "b.mov"))]
        store = SimpleNamespace(listing=lambda: [("/bench/.inlet-check/1", 12, "99")] +
                                [(f"/bench/{key}", size, md5) for key, size, md5 in listing])
        return stations.judge(SimpleNamespace(sources=sources, stations=agents, store=store, share=True))[:4]

    for what, found, listing, second in (
            ("all is right", (0, 0, 0, 0), right, "a_2.mov"),
            ("one is overwritten", (1, 0, 1, 0), [("a.mov", 5, "22"), *right[2:]], "a.mov"),
            ("one is there twice", (0, 1, 0, 0), [*right, ("c.mov", 5, "33")], "a_2.mov"),
            ("one is cut short", (1, 0, 0, 1), [*right[:2], right[3], ("b.mov", 3, "99")], "a_2.mov"),
            ("one has another size", (1, 0, 0, 0), [*right[:2], right[3], ("b.mov", 4, "33")], "a_2.mov"),
            ("the share's is lost", (1, 0, 0, 0), right[:3], "a_2.mov"),
            ("the share's has a station's key", (0, 0, 1, 0), right, "a_3.mov")):
        expect(what, judged(listing, second), found)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.sqlite"
        for words, found in (("CREATE TABLE fleet (a); CREATE TABLE file (a); INSERT INTO file VALUES (1)", []),
                             ("CREATE TABLE place_file (a PRIMARY KEY)", []),
                             ("INSERT INTO place_file VALUES (1)", ["place_file"])):
            with opened(journal) as database:
                database.executescript(words)
            expect(words, [name for name in fleet_alone.written(journal) if "autoindex" not in name], found)
    for counts in (fleet.SHORT, fleet.FULL):
        faults = fleet.schedule(counts, random.Random(5))
        expect("all faults", Counter(faults), Counter(counts) + Counter(backup=counts["restore"]))
        order = [fault for fault in faults if fault in ("backup", "restore")]
        expect("a backup before each restore", order, ["backup", "restore"] * counts["restore"])
        expect("faults that it forgets", faults.index("restore") - faults.index("backup") > 4, True)


def shared() -> None:
    """Sources of a share, and takeovers by a log that is made up."""
    with tempfile.TemporaryDirectory() as folder:
        share, draw = Share(Path(folder)), random.Random(1)
        for policy in Share.POLICIES:
            share.put(policy, "a.mov", 10, draw)
        left = {"media/delete/a.mov: still in its folder", "media/archive/a.mov: still in its folder"}
        expect("nothing is disposed of", set(share.problems()), left)
        done = share.root / ".inlet" / "done" / "archive"
        done.mkdir(parents=True)
        os.rename(share.root / "archive" / "a.mov", done / "a.mov")
        (share.root / "delete" / "a.mov").unlink()
        expect("all are", share.problems(), [])
        (share.root / "keep" / "a.mov").write_text("changed")
        (share.root / "delete" / ".inlet-1").touch()
        expect("a private name, and a changed file", len(share.problems()), 2)

    def log(*rows: tuple[float, int, str, str, str]) -> list[Request]:
        return [Request(at, status, method, agent, "/bench/a.mov", query) for at, status, method, agent, query in rows]

    part, upload = "partNumber=4&uploadId=u", "uploadId=u"
    good = log((1, 200, "PUT", "one", part), *((5 + number / 10, 200, "PUT", "two", part) for number in range(7)),
               (6, 200, "POST", "two", upload), (2, 404, "PUT", "one", part), (9, 200, "GET", "one", upload))
    expect("a takeover", takeovers.judge_one(good, "a.mov", "one", 2, 8), takeovers.Takeover(4, 7))
    for what, row, late in (("a late part", (9, 404, "PUT", "one", part), 1), ("a late end", (9, 404, "POST", "one", upload), 1),
                            ("a late abort", (9, 204, "DELETE", "one", upload), 1),
                            ("another's", (9, 200, "PUT", "two", part), 0)):
        found = takeovers.judge_one(good + log(row), "a.mov", "one", 2, 8)
        expect(what, (found.parts, found.late), (7 + (late == 0), late))
    bad = takeovers.Takeover(9, 6, late=1, said=2, disposed=True)
    reached = {row.what: row.reached for row in takeovers.rows_of("stopped", [takeovers.Takeover(4, 7), bad], 3)}
    expect("rows of a bad takeover", [name for name, good_one in reached.items() if good_one], ["B: stopped: p50"])


def texts() -> None:
    """Of nm, and of libFuzzer."""
    for name, wanted in (("$s10InletAgent5ThingV", "InletAgent"), ("$sSS5InletE", "Swift standard library"),
                         ("$sSo3fooV", "C types as Swift sees them"), ("CNIOBoringSSL_MD5", "BoringSSL (NIO)"),
                         ("main", "C and what has no name of its own"), ("$sScT6cancel", "Swift concurrency")):
        expect(name, binary.module(name), wanted)
    lines = "0010 0008 T $s5Inlet1aV\n0020 0004 r $s5Inlet1bV\n0010 0008 T alias\n0030 0100 b $s5Inlet1cV\n0040 U open\n"
    expect("by_module", dict(binary.by_module(lines)), {"Inlet": [8, 4]})
    said = ("#9 NEW cov: 12 ft\n#99 DONE cov: 34 ft\nDone 99 runs in 3 second(s)\nstat::number_of_executed_units: 99\n"
            "stat::peak_rss_mb: 77\n")
    expect("figures", fuzz.figures(said), (99, 3, 34, 77))
    expect("reason", fuzz.reason("x\nFatal error: names: a NUL\n"), "Fatal error: names: a NUL")


if __name__ == "__main__":
    for test in (scenarios, outcome, waiting, stores, services, books, logs, meddling, rates, growth, memory,
                 journals, fleets, shared, texts, *throughput_test.TESTS):
        test()
        print(f"ok    {test.__name__}")
