"""The tables of throughput.py, and what is kept of a run below Tests/Benchmarks."""

import hashlib
import json
import os
import platform
import ssl
import subprocess
import time
from pathlib import Path

import chart
from measure import GIB, HERE, binary, table
from targets import is_big, merged, speed_text, summary, target_rows, title, total

KEPT = "Tests/Benchmarks/throughput.json"


def show(group):
    rows = []
    for name in group["clients"]:
        one = summary(group, name)
        if not one:
            continue
        spread = "" if one["rounds"] < 2 else f"{speed_text(group, one['least'])} - {speed_text(group, one['most'])}"
        handshakes = f"{one['handshakes']:.0f}/{one['resumed']:.0f}" if group["scheme"] == "https" else ""
        rows.append([name, one["rounds"], speed_text(group, one["speed"]), spread,
                     f"{total(group) / one['seconds'] / (1 << 20):,.0f}", f"{group['count'] / one['seconds']:,.1f}",
                     f"{one['cpu']:.2f}", f"{one['sink']:.2f}", f"{one['peak']:.1f}", f"{one['connections']:.0f}", handshakes])
    table(f"{title(group)}; objects and bytes checked",
          ["", "rounds", "median", "spread", "MiB/s", "files/s", "CPU s", "sink CPU s", "peak RSS MiB", "connections",
           "TLS handshakes/resumed"], rows)


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip().partition("\n")[0]


def machine():
    """Facts that figures depend on; no names."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    libcurl = next((word for word in said("curl", "-V").split() if word.startswith("libcurl/")), "")
    return {"cores": len(os.sched_getaffinity(0)), "cpu": model, "kernel": platform.release(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB, 1),
            "libcurl": libcurl.removeprefix("libcurl/"), "openssl": ssl.OPENSSL_VERSION, "inlet": said(binary(), "--version").removeprefix("inlet "),
            "build": os.environ.get("INLET_BUILD", "as given"),
            **{f"{name}_cpu_seconds_per_gib": round(hash_seconds_per_gib(name), 3) for name in ("md5", "sha256")}}


def hash_seconds_per_gib(name):
    block = os.urandom(1 << 20)
    total, before = hashlib.new(name), time.process_time()
    for _ in range(1024):
        total.update(block)
    return time.process_time() - before


def targets_of(run):
    return [row for group in run["groups"] for row in target_rows(group, run["machine"])]


def save(run):
    """Into the kept file. What an earlier run measured and this one did not stays, if the machine is the same."""
    path = HERE.parent.parent / KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        kept = json.loads(path.read_text())
        if all(kept["machine"].get(key) == run["machine"][key] for key in ("cores", "cpu", "memory_gib")):
            run["groups"] = merged(kept["groups"], run["groups"])
            run["peers"] = kept["peers"] | run["peers"]
    for group in run["groups"]:
        group.setdefault("targets", list(target_rows(group, run["machine"])))
    run["groups"].sort(key=order)
    path.write_text(as_lines(run))
    path.with_suffix(".svg").write_text(chart.draw(run["groups"]))
    print(f"\nkept: {KEPT} and its chart")


def order(group):
    """Big files first, plain before TLS."""
    return (not is_big(group), -group["size"], group["scheme"], group["verify"] != "size", group["verify"], group["delay"])


def as_lines(run):
    """JSON with a line for each round: a change of one is a change of one line."""
    text = json.dumps(run, indent=1)
    deep = "\n" + " " * 5
    pieces = text.split(deep + "{")
    lines = [pieces[0]] + [deep + "{" + " ".join(inner.split()) + "}" + rest for inner, _, rest in
                           (piece.partition("}") for piece in pieces[1:])]
    return "".join(lines) + "\n"
