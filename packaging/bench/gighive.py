"""One big file through GigHive's two transports, against `curl -F` to the same sink. Run gighive.sh.

The file is sparse: reading costs as much as from the page cache, and 6 GiB need no disk. Both ends hash with SHA-256, as the
real server and its client do; curl hashes nothing.
"""

import argparse
import os
import subprocess

from measure import GIB, Inlet, Server, Workspace, cpu_seconds, median, peak_rss_mib, reset_peak_rss, table, verdict


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
    """(bytes/s, CPU seconds, peak RSS in MiB, RSS over idle in MiB)."""
    sink.post("/_/reset", {})
    drop = inlet.config.parent / "drop" / name
    staged = source.parent / name
    os.link(source, staged)
    reset_peak_rss(inlet.pid)
    idle, before = peak_rss_mib(inlet.pid), cpu_seconds(inlet.pid)
    os.rename(staged, drop)
    seconds = inlet.wait_delivered(name)
    got = sink.get("/_/stats")["bytes"]
    if got != source.stat().st_size:
        raise SystemExit(f"the sink got {got:,} bytes of {source.stat().st_size:,}")
    peak = peak_rss_mib(inlet.pid)
    return got / seconds, cpu_seconds(inlet.pid) - before, peak, peak - idle


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


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--gib", type=float, default=6)
    given = options.parse_args()
    results = {"curl -F": [], "multipart": [], "tus": []}
    with Workspace() as folder, Server("gighive_sink.py") as sink:
        source = folder / "source.mp4"
        with open(source, "wb") as file:
            file.truncate(int(given.gib * GIB))
        agents = {way: Inlet(configure(folder / way, sink.url, way), folder / f"{way}.log") for way in ("multipart", "tus")}
        with agents["multipart"], agents["tus"]:
            for agent in agents.values():
                agent.wait_ready()
            for number in range(given.rounds):
                results["curl -F"].append(curl_round(sink, source))
                for way, agent in agents.items():
                    results[way].append(inlet_round(sink, agent, source, f"round-{number}.mp4"))

    def row(who):
        columns = [median(column) for column in zip(*results[who])]
        memory = [f"{value:.1f}" for value in columns[2:]] or ["-", "-"]
        return [who, f"{columns[0] / GIB:.2f}", f"{columns[1] / given.gib:.2f}", *memory]

    table(f"{given.gib:g} GiB, median of {given.rounds}", ["", "GiB/s", "CPU s/GiB", "peak RSS MiB", "over idle MiB"],
          [row(who) for who in results])
    base = median(r[0] for r in results["curl -F"])
    rows = []
    for way in ("multipart", "tus"):
        ratio = median(r[0] for r in results[way]) / base
        peak, growth = max(r[2] for r in results[way]), max(r[3] for r in results[way])
        rows += [[f"{way}, of curl -F's bytes/s", f"{ratio:.2f}", ">= 0.80", verdict(ratio >= 0.8)],
                 [f"{way}, peak RSS MiB", f"{peak:.1f}", "<= 48", verdict(peak <= 48)],
                 [f"{way}, RSS over idle MiB", f"{growth:.1f}", "<= 20", verdict(growth <= 20)]]
    table("targets", ["", "measured", "target", ""], rows)


if __name__ == "__main__":
    main()
