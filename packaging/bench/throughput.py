"""One big file through R2 multipart to a discarding sink, against `curl -T` to the same sink. Run throughput.sh."""

import argparse
import hashlib
import os
import subprocess
import time

from measure import GIB, Inlet, Server, Workspace, cpu_seconds, median, peak_rss_mib, table, verdict, write_config


def make_file(path, size):
    """Random, so that nothing on the way can shorten it; read once more, so that it comes from the page cache."""
    block = os.urandom(1 << 26)
    with open(path, "wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        file.write(block[: size % len(block)])
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)


def md5_seconds_per_gib():
    block = bytes(os.urandom(1 << 20))
    total, before = hashlib.md5(), time.process_time()
    for _ in range(1024):
        total.update(block)
    return time.process_time() - before


def curl_round(sink, source):
    """(bytes/s, curl's CPU seconds, the sink's)."""
    sink.post("/_/reset", {})
    process = subprocess.Popen(
        ["curl", "-sS", "--fail", "-T", str(source), "-o", "/dev/null", "-w", "%{speed_upload}", f"{sink.url}/plain/file"],
        stdout=subprocess.PIPE)
    speed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit("curl failed; its message is above")
    return float(speed), usage.ru_utime + usage.ru_stime, sink.get("/_/stats")["cpu_seconds"]


def inlet_round(sink, inlet, source, name):
    """(bytes/s, inlet's CPU seconds, the sink's)."""
    sink.post("/_/reset", {})
    staged, drop = source.parent / name, inlet.config.parent / "drop" / name
    os.link(source, staged)
    before = cpu_seconds(inlet.pid)
    # A rename into the folder is complete at once: no writer, nothing to settle.
    os.rename(staged, drop)
    seconds = inlet.wait_delivered(name)
    spent = cpu_seconds(inlet.pid) - before
    stats = sink.get("/_/stats")
    if stats["bytes"] != source.stat().st_size:
        raise SystemExit(f"the sink got {stats['bytes']:,} bytes of a file of {source.stat().st_size:,}")
    return stats["bytes"] / seconds, spent, stats["cpu_seconds"]


def compare(folder, source, verify, rounds):
    """Interleaved rounds of both; the medians, and inlet's peak RSS."""
    gib = source.stat().st_size / GIB
    place = folder / verify
    place.mkdir()
    with Server("sink.py", "--etag", verify) as sink:
        with Inlet(write_config(place, sink.url, verify=verify), place / "inlet.log") as inlet:
            inlet.wait_ready()
            curls, inlets = [], []
            for number in range(rounds):
                curls.append(curl_round(sink, source))
                inlets.append(inlet_round(sink, inlet, source, f"round-{number}.bin"))
            peak = peak_rss_mib(inlet.pid)

    def medians(results):
        speed, cpu, sink_cpu = (median(column) for column in zip(*results))
        return {"speed": speed / GIB, "cpu": cpu / gib, "sink": sink_cpu / gib}

    curl, ours = medians(curls), medians(inlets)
    rows = [[who, f"{m['speed']:.2f}", f"{m['cpu']:.2f}", f"{m['sink']:.2f}", rss]
            for who, m, rss in (("curl -T", curl, "-"), ("inlet", ours, f"{peak:.1f}"))]
    table(f"verify: {verify}, {gib:g} GiB, median of {rounds}",
          ["", "GiB/s", "CPU s/GiB", "sink CPU s/GiB", "peak RSS MiB"], rows)
    return curl, ours


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--gib", type=float, default=2)
    given = options.parse_args()
    with Workspace() as folder:
        source = folder / "source.bin"
        make_file(source, int(given.gib * GIB))
        plain_curl, plain = compare(folder, source, "size", given.rounds)
        curl, ours = compare(folder, source, "md5", given.rounds)
    md5 = md5_seconds_per_gib()
    cores = len(os.sched_getaffinity(0))
    # Sending, receiving (this sink hashes too, as a store does) and our own hashing share the cores.
    allowed = cores / (curl["cpu"] + curl["sink"] + md5)
    plain_ratio, ratio = plain["speed"] / plain_curl["speed"], ours["speed"] / allowed
    print(f"\nallowed with MD5: {cores} cores / ({curl['cpu']:.2f} curl + {curl['sink']:.2f} sink + {md5:.2f} MD5) CPU s/GiB"
          f" = {allowed:.2f} GiB/s")
    table("targets", ["", "measured", "target", ""], [
        ["verify: size, of curl's bytes/s", f"{plain_ratio:.2f}", ">= 0.90", verdict(plain_ratio >= 0.9)],
        ["verify: md5, of what the cores allow", f"{ratio:.2f}", ">= 0.80", verdict(ratio >= 0.8)],
    ])


if __name__ == "__main__":
    main()
