"""One big file through GigHive's two transports, against `curl -F` to the same sink. Run gighive.sh.

The file is sparse: reading costs as much as from the page cache, and 6 GiB need no disk. Both ends hash with SHA-256, as the
real server and its client do; curl hashes nothing.
"""

import argparse
import os
import subprocess
import sys

import memory_peak
import outcome
from measure import GIB, Inlet, Server, Workspace, cpu_seconds, median, peak_rss_mib, reset_peak_rss, table
from memory_peak import HEADER, MemoryPeak
from outcome import at_most, target

MOST_RSS, MOST_GROWTH, LEAST_SPEED = 40, 20, 0.8


def curl_round(sink, source):
    """(bytes/s, CPU seconds)."""
    sink.post("/_/reset", {})
    process = subprocess.Popen(
        ["curl", "-sS", "--fail", "-F", "label=bench", "-F", f"file=@{source};type=video/mp4", "-o", "/dev/null",
         "-w", "%{speed_upload}", f"{sink.url}/api/uploads"], stdout=subprocess.PIPE)
    speed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit("curl failed; its message is above")
    return float(speed), usage.ru_utime + usage.ru_stime


def inlet_round(sink, inlet, source, name):
    """(bytes/s, CPU seconds, RSS over idle in MiB, MemoryPeak)."""
    sink.post("/_/reset", {})
    drop = inlet.config.parent / "drop" / name
    staged = source.parent / name
    os.link(source, staged)
    reset_peak_rss(inlet.pid)
    idle, before = peak_rss_mib(inlet.pid), cpu_seconds(inlet.pid)
    with MemoryPeak(inlet.pid) as peak:
        os.rename(staged, drop)
        seconds = inlet.wait_delivered(name)
    got = sink.get("/_/stats")["bytes"]
    if got != source.stat().st_size:
        raise SystemExit(f"the sink got {got:,} bytes of {source.stat().st_size:,}")
    return got / seconds, cpu_seconds(inlet.pid) - before, peak.kernel - idle, peak


def configure(place, url, transport):
    (place / "drop").mkdir(parents=True)
    config = place / "inlet.yaml"
    config.write_text(f"""\
state_dir: {place}/state
destinations:
  stage: {{ type: gighive, url: "{url}", user: uploader, password: bench, transport: {transport}, max_upload_bytes: 64GiB }}
watch:
  - {{ path: {place}/drop, settle: 0s }}
routes:
  - {{ name: everything, to: [stage], key: "{{name}}" }}
""")
    return config


def measure(folder, sink, given, environment=None):
    """{way: rounds}, interleaved."""
    folder.mkdir()
    found = {"curl -F": [], "multipart": [], "tus": []}
    source = folder / "source.mp4"
    with open(source, "wb") as file:
        file.truncate(int(given.gib * GIB))
    agents = {way: Inlet(configure(folder / way, sink.url, way), folder / f"{way}.log", environment)
              for way in ("multipart", "tus")}
    with agents["multipart"], agents["tus"]:
        for agent in agents.values():
            agent.wait_ready()
        for number in range(given.rounds):
            if not environment:
                found["curl -F"].append(curl_round(sink, source))
            for way, agent in agents.items():
                found[way].append(inlet_round(sink, agent, source, f"round-{number}.mp4"))
    return found


def show(found, given):
    def row(who):
        columns = [median(column) for column in list(zip(*found[who]))[:3]]
        growth = [f"{value:.1f}" for value in columns[2:]] or ["-"]
        return [who, f"{columns[0] / GIB:.2f}", f"{columns[1] / given.gib:.2f}", *growth]

    table(f"{given.gib:g} GiB, median of {given.rounds}", ["", "GiB/s", "CPU s/GiB", "over idle MiB"], [row(who) for who in found])


def highest(rounds):
    return max((one[3] for one in rounds), key=lambda peak: peak.kernel)


def targets(found):
    base = median(r[0] for r in found["curl -F"])
    for way in ("multipart", "tus"):
        ratio = median(r[0] for r in found[way]) / base
        yield target(f"{way}, of curl -F's bytes/s", f"{ratio:.2f}", f">= {LEAST_SPEED}", ratio >= LEAST_SPEED)
        yield at_most(f"{way}, peak RSS", highest(found[way]).kernel, MOST_RSS, " MiB")
        yield at_most(f"{way}, RSS over idle", max(r[2] for r in found[way]), MOST_GROWTH, " MiB")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--gib", type=float, default=6)
    options.add_argument("--once", action="store_true", help="without the run in which inlet gives back no code")
    outcome.add_option(options)
    given = options.parse_args()
    with Workspace() as folder, Server("gighive_sink.py") as sink:
        found = measure(folder / "usual", sink, given)
        environment = None if given.once else memory_peak.keeping_code(folder)
        one = argparse.Namespace(rounds=1, gib=given.gib)
        kept = measure(folder / "kept", sink, one, environment) if environment else {}
    show(found, given)
    memory = [[way, *highest(found[way]).cells()] for way in ("multipart", "tus")]
    memory += [[f"{way}, if inlet gave back no code", *highest(kept[way]).cells()] for way in ("multipart", "tus") if kept]
    table("peak memory, MiB", ["", *HEADER], memory)
    return outcome.conclude(list(targets(found)), is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
