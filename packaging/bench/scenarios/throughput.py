"""Inlet and its peers, sending the same files to the same discarding sink.

Rounds are interleaved, medians are told; after every round each object's name, size and, of small ones, MD5 are compared.
"""

import datetime
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import chart
import targets
from agent import ROOT, binary
from clients import CHECKS, Client, Load, clients
from report import GIB, Failed, Given, Row, table
from servers import Sink
from targets import Group, speed_text, summary

LOADS = ["1x5GiB", "30x256MiB", "10000x256KiB", "5000x16KiB", "50000x4KiB"]
SCHEMES = ["http", "https"]
# Ends within a quarter of an hour on two cores: every load once, and one of each kind with TLS and with the other checks.
SHORT = [(load, "http", "size") for load in LOADS] + [
    ("1x5GiB", "http", "md5"), ("1x5GiB", "http", "crc32c"), ("1x5GiB", "http", "sha256"),
    ("1x5GiB", "https", "size"), ("5000x16KiB", "http", "md5"), ("5000x16KiB", "https", "size")]
# `aws` is the tool and the library below it.
PEERS = ["curl", "s5cmd", "rclone", "aws", "aws-cli", "aws-crt"]
KEPT = "Tests/Benchmarks/throughput.json"
COUNTS = ("puts", "connections", "handshakes", "resumed")


OPTIONS = {
    "--loads": ([], f"such as 5000x16KiB,1x2GiB; else {','.join(LOADS)}"),
    "--schemes": SCHEMES,
    "--verify": list(CHECKS),
    "--peers": (PEERS, "without it all that are there"),
    "--rounds": 3,
    "--delay": (0, "holds back every answer"),
    "--all": (False, "every load, scheme, check and client: hours"),
    "--save": (False, f"into {KEPT}, in the place of what was measured before"),
}


def plan(given: Given) -> list[tuple[str, str, str]]:
    """(load, scheme, verify) in the order of the loads, so that each is made once."""
    if given.all:
        chosen = list(itertools.product(LOADS, SCHEMES, CHECKS))
    elif given.loads or given.schemes or given.verify:
        chosen = list(itertools.product(given.loads or LOADS, given.schemes or ["http"], given.verify or ["size"]))
    else:
        chosen = SHORT
    order = list(dict.fromkeys(load for load, _, _ in chosen))
    return sorted(chosen, key=lambda one: order.index(one[0]))


class Measurement:
    """Groups of rounds, one after the other, and what inlet failed at."""

    def __init__(self, folder: Path, given: Given) -> None:
        self.folder, self.given, self.failures = folder, given, []
        self.clients = [one for one in clients() if one.name.startswith("inlet") or given.peers is None
                        or {one.name, one.name.partition("-")[0]} & set(given.peers)]

    def one_round(self, client: Client, load: Load, group: Group) -> dict[str, float]:
        """Ends the measurement when something else arrived than was sent."""
        place, scheme = self.folder / "round", group["scheme"]
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        etag = "md5" if group["verify"] == "md5" else "size"
        with Sink(scheme, etag, self.given.delay, client.ports[scheme == "https"]) as sink:
            seconds, cpu, rss = client.send(sink, load, place, group["verify"])
            stats = load.check(client.name, sink)
        return {"seconds": round(seconds, 4), "cpu": round(cpu, 3), "rss": round(rss, 1), "sink": stats["cpu_seconds"]} | {
            key: stats[key] for key in COUNTS}

    def leave_out(self, client: Client, reason: str, group: Group) -> None:
        print(f"left out: {client.name}: {reason}", flush=True)
        group["left_out"][client.name] = reason

    def tried(self, client: Client, load: Load, group: Group) -> dict[str, float] | None:
        """A round's figures; None when the client failed. A peer may. What inlet was asked for it has to do."""
        try:
            return self.one_round(client, load, group)
        except (Failed, OSError) as error:
            self.leave_out(client, str(error), group)
            if client.name.startswith("inlet"):
                self.failures.append(Row(f"{targets.title(group)}: {client.name}", str(error), "no failure", False, True))
            return None

    def able(self, load: Load, probe: Load, group: Group) -> list[Client]:
        """Those that can take part: without --all only those of our clients that targets name. Each sends two small files
        first."""
        able = []
        for client in self.clients:
            if client.name.startswith("inlet") and not self.given.all and client.name not in targets.ways(group):
                continue
            if reason := client.problem(load, group["verify"], self.given.all):
                # No failure: it says by itself that it has no such check, or is not there.
                self.leave_out(client, reason, group)
            elif self.tried(client, probe, group):
                able.append(client)
        return able

    def measure(self, load: Load, probe: Load, scheme: str, verify: str) -> Group:
        """One load over one scheme with one check."""
        group: Group = {"load": load.name, "count": load.count, "size": load.size, "scheme": scheme, "verify": verify,
                        "delay": self.given.delay, "date": f"{datetime.date.today()}", "clients": {}, "left_out": {}}
        print(f"\n{targets.title(group)}", flush=True)
        able = self.able(load, probe, group)
        rounds = group["clients"] = {client.name: [] for client in able}
        for number, client in itertools.product(range(self.given.rounds), able):
            if client.name not in group["left_out"] and (client.is_compared or number == 0):
                if figures := self.tried(client, load, group):
                    rounds[client.name].append(figures)
        return group

    def run(self) -> list[Group]:
        groups, probe = [], Load("2x16KiB").make(self.folder / "probe")
        for name, chosen in itertools.groupby(plan(self.given), key=lambda one: one[0]):
            load = Load(name).make(self.folder / "source")
            for _, scheme, verify in chosen:
                groups.append(self.measure(load, probe, scheme, verify))
                show(groups[-1])
            shutil.rmtree(load.folder)
        return groups


# Results


def show(group: Group) -> None:
    lines = []
    for name in group["clients"]:
        if one := summary(group, name):
            spread = "" if one["rounds"] < 2 else f"{speed_text(group, one['least'])} - {speed_text(group, one['most'])}"
            handshakes = f"{one['handshakes']:.0f}/{one['resumed']:.0f}" if group["scheme"] == "https" else ""
            lines.append([
                name, one["rounds"], speed_text(group, one["speed"]), spread,
                f"{targets.total(group) / one['seconds'] / (1 << 20):,.0f}", f"{group['count'] / one['seconds']:,.1f}",
                f"{one['cpu']:.2f}", f"{one['sink']:.2f}", f"{one['peak']:.1f}", f"{one['connections']:.0f}", handshakes])
    table(f"{targets.title(group)}; objects and bytes checked",
          ["", "rounds", "median", "spread", "MiB/s", "files/s", "CPU s", "sink CPU s", "peak RSS MiB", "connections",
           "TLS handshakes/resumed"], lines)


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip().partition("\n")[0]


def hash_seconds_per_gib(name: str) -> float:
    block, total, before = os.urandom(1 << 20), hashlib.new(name), time.process_time()
    for _ in range(1024):
        total.update(block)
    return round(time.process_time() - before, 3)


def machine() -> dict[str, Any]:
    """Facts that figures depend on; no names."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    libcurl = next((word for word in said("curl", "-V").split() if word.startswith("libcurl/")), "")
    return {"cores": len(os.sched_getaffinity(0)), "cpu": model, "kernel": platform.release(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB, 1),
            "libcurl": libcurl.removeprefix("libcurl/"), "openssl": ssl.OPENSSL_VERSION,
            "inlet": said(binary(), "--version").removeprefix("inlet "), "build": os.environ.get("INLET_BUILD", "as given"),
            **{f"{name}_cpu_seconds_per_gib": hash_seconds_per_gib(name) for name in ("md5", "sha256")}}


def rows_of(group: Group, facts: dict[str, Any]) -> list[Row]:
    return [row._replace(what=f"{targets.title(group)}: {row.what}") for row in targets.target_rows(group, facts)]


def merged(old: list[Group], new: list[Group]) -> list[Group]:
    """The groups of an earlier run, those that were measured again replaced."""
    again = {targets.title(group) for group in new}
    return [group for group in old if targets.title(group) not in again] + new


def save(run: dict[str, Any]) -> None:
    """Into the kept file. What an earlier run measured and this one did not stays, if the machine is the same."""
    path = ROOT / KEPT
    kept = json.loads(path.read_text())
    if all(kept["machine"].get(key) == run["machine"][key] for key in ("cores", "cpu", "memory_gib")):
        run |= {"groups": merged(kept["groups"], run["groups"]), "peers": kept["peers"] | run["peers"]}
    for group in run["groups"]:
        group.setdefault("targets", [
            {"group": targets.title(group), "what": row.what, "measured": row.measured, "target": row.target,
             "reached": row.reached} for row in targets.target_rows(group, run["machine"])])
    # Big files first, plain before TLS.
    run["groups"].sort(key=lambda group: (not targets.is_big(group), -group["size"], group["scheme"], group["verify"] != "size",
                                          group["verify"], group["delay"]))
    path.write_text(as_lines(run))
    path.with_suffix(".svg").write_text(chart.draw(run["groups"]))
    print(f"\nkept: {KEPT} and its chart")


def as_lines(run: dict[str, Any]) -> str:
    """JSON with a line for each round: a change of one is a change of one line."""
    return re.sub(r"\n {5}{[^}]*}", lambda one: one[0][:7] + " ".join(one[0][7:-1].split()) + "}",
                  json.dumps(run, indent=1)) + "\n"


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    measurement = Measurement(folder, given)
    groups, facts = measurement.run(), machine()
    used = {name for group in groups for name in group["clients"]}
    others = {peer.name: {"version": peer.asked_version(), "does": peer.note} for peer in measurement.clients
              if peer.note and peer.name in used}
    rows = [row for group in groups for row in rows_of(group, facts)]
    if given.save:
        save({"machine": facts, "peers": others, "groups": groups})
    return "targets", [*rows, *measurement.failures]
