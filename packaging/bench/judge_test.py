"""`crash.sh --self-test`: every judgement of judge.py, on what it must accept and on what it must not."""

import judge


def kinds(*arguments, function):
    found = judge.Findings()
    function(found, *arguments)
    return dict(found.counts)


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: {got}, not {wanted}")


def stores():
    wanted = {"a": "1", "b": "2"}
    for objects, faults in (
            ([("a", "1"), ("b", "2")], {}),
            ([("a", "1")], {"lost": 1}),
            ([("a", "1"), ("b", "9")], {"partial": 1}),
            ([("a", "1"), ("b", "2"), ("b", "2")], {"duplicated": 1}),
            ([("a", "1"), ("b", "2"), ("b_2", "2")], {"duplicated": 1}),
            ([("a", "1"), ("b", "2"), ("c", "7")], {"foreign": 1})):
        expect(f"by_key {objects}", kinds("x", wanted, objects, function=judge.by_key), faults)
    for objects, faults in ((["1", "2"], {}), (["1"], {"lost": 1}), (["1", "2", "2"], {"duplicated": 1}),
                            (["1", "2", "3"], {"partial": 1})):
        expect(f"by_content {objects}", kinds("x", wanted, objects, function=judge.by_content), faults)


def services():
    video = {"key": "v", "sha256": "1"}
    done = {"id": "j", "video_key": "v", "status": "completed"}
    for jobs, charges, faults in (
            ([done], 1, {}),
            ([done, done], 2, {"duplicated": 2}),
            ([dict(done, status="pending")], 1, {"left open": 1}),
            ([], 0, {"lost": 1, "duplicated": 1})):
        report = {"videos": [video], "jobs": jobs, "charges": charges}
        expect(f"videos {jobs}", kinds({"clip": "1"}, report, function=judge.videos), faults)
    for fetched, faults in (
            ({"product.json": "9", "a.png": "1", "b.png": "2"}, {}),
            ({"a.png": "1", "b.png": "2"}, {"lost": 1}),
            ({"product.json": "9", "a.png": "1"}, {"lost": 1}),
            ({"product.json": "9", "a.png": "1", "b.png": "3"}, {"lost": 1, "partial": 1}),
            ({"product.json": "9", "a.png": "1", "b.png": "2", "c.png": "2"}, {"partial": 1})):
        expect(f"pictures {fetched}", kinds("j", ["1", "2"], fetched, function=judge.pictures), faults)
    expect("no pictures", kinds("j", [], {"product.json": "9"}, function=judge.pictures), {"lost": 1})
    good = {"key": "s", "model": "http://h/public/d/s.glb"}
    for held, faults in (([good], {}), ([], {"lost": 1}), ([good, good], {"duplicated": 1}),
                         ([dict(good, model=None)], {"lost": 1}), ([good, dict(good, key="t")], {"foreign": 1})):
        expect(f"spaces {held}", kinds({"s": "d/s.glb"}, {"spaces": held}, function=judge.spaces), faults)


def books():
    good = {"path": "/r/a", "state": "delivered"}
    for rows, faults in (([good], {}), ([], {"receipts": 1}), ([good, good], {"receipts": 1}),
                         ([dict(good, state="failed")], {"receipts": 1}),
                         ([good, dict(good, path="/r/b")], {"receipts": 1})):
        expect(f"receipts {rows}", kinds("/r", ["a"], rows, function=judge.receipts), faults)
    row = dict(good, receipt_file="/s/1.json")
    for files, faults in (({"/s/1.json": row}, {}), ({}, {"receipts": 1}), ({"/s/1.json": None}, {"receipts": 1}),
                          ({"/s/1.json": good}, {"receipts": 1}), ({"/s/1.json": row, "/s/2.json": row}, {"receipts": 1})):
        expect(f"receipt files {files}", kinds({"/r/a"}, [row], files, function=judge.receipt_files), faults)
    expect("a receipt without a file", kinds({"/r/a"}, [good], {}, function=judge.receipt_files), {"receipts": 1})
    expect("an unasked file", kinds(set(), [row], {"/s/1.json": row}, function=judge.receipt_files), {"receipts": 2})
    unit = {"a.mp4": "1"}
    for held, faults in (({"u": [unit]}, {}), ({}, {"lost": 1}), ({"u": [unit, unit]}, {"duplicated": 1}),
                         ({"u": [{"a.mp4": "2"}]}, {"partial": 1}), ({"u": [None]}, {"partial": 1}),
                         ({"u": [unit], "v": [unit]}, {"foreign": 1})):
        expect(f"lists {held}", kinds("x", {"u": unit}, held, function=judge.lists), faults)
    status = {"seen": 3, "ignored": 1, "pending": 0, "files": {"delivered": 2, "failed": 0, "pending": 0}}
    expect("balance", kinds(status, 2, function=judge.balance), {})
    expect("balance of seen", kinds(dict(status, seen=4), 2, function=judge.balance), {"balance": 1})
    expect("balance of files", kinds(status, 3, function=judge.balance), {"balance": 1})
    failed = dict(status, files={"delivered": 1, "failed": 1, "pending": 0})
    expect("balance of states", kinds(failed, 1, function=judge.balance), {"balance": 1})


def logs():
    def line(event, job, size=0):
        return {"event": event, "job": job, "destination": "d", "size": size}

    once = [[line("job.finished", 1)], [line("job.finished", 2)]]
    expect("finished once", kinds(once, function=judge.finished), {})
    expect("finished twice", kinds(once + [[line("job.finished", 1)]], function=judge.finished), {"finished twice": 1})
    run = [line("job.started", 1, 10), line("job.started", 2, 700), line("job.delivered", 1),
           line("job.started", 3, 30), line("job.waiting", 3)]
    expect("in flight", judge.in_flight(run), {(2, "d"): 700})
    expect("allowance", judge.allowance([run, run, run], part=500), 1000)
    expect("allowance of the large", judge.allowance([run, [line("job.started", 4, 9)], run], part=500, above=9), 500)
    early = [{"event": "agent.started"}]
    expect("killed early", judge.killed_early([early, early + [{"event": "agent.ready"}], []]), 1)
    expect("nothing in flight", judge.allowance([[], run]), 0)


def main():
    for test in (stores, services, books, logs):
        test()
        print(f"ok    {test.__name__}")


if __name__ == "__main__":
    main()
