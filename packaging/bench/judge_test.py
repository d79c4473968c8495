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
    for jobs, charges, fetched, faults in (
            ([done], 1, True, {}),
            ([done], 1, False, {"lost": 1}),
            ([done, done], 2, True, {"duplicated": 2}),
            ([dict(done, status="pending")], 1, True, {"left open": 1}),
            ([], 0, True, {"lost": 1, "duplicated": 1})):
        report = {"videos": [video], "jobs": jobs, "charges": charges}
        expect(f"videos {jobs}", kinds({"clip": "1"}, report, lambda _: fetched, function=judge.videos), faults)
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
    expect("nothing in flight", judge.allowance([[], run]), 0)


def main():
    for test in (stores, services, books, logs):
        test()
        print(f"ok    {test.__name__}")


if __name__ == "__main__":
    main()
