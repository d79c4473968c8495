"""Inlet and its peers, sending the same files to the same discarding sink, and beside them the floor: libcurl alone.

Rounds are interleaved, forwards and backwards in turn, with the files in the page cache; medians are told. The sink hashes
nothing while it is measured: MD5s and CRCs are answered from a table made before. Two files that it does hash are sent first by
each client. After every round each object's name and size are compared, with the MD5 of small ones. CPU time is user and system
of all processes of a client; of s5cmd the fastest of 16, 64 and 256 workers counts. Without options it takes each kind of
target once, also folder.sh's and gighive.sh's: minutes.
"""

import argparse
import dataclasses
import datetime
import functools
import itertools
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import clients
import perf
from agent import ROOT, binary
from chart import draw
from clients import CHECKS, Client, Load
from groups import Group, aim, cost_text, is_big, speed_text, summary, target_rows, title, total
from report import GIB, MIB, Failed, Given, Row, table
from scenarios import folder as copying
from scenarios import gighive
from servers import Sink

LOADS = ["1x2GiB", "8x256MiB", "10000x256KiB", "5000x16KiB", "50000x4KiB"]
SCHEMES, DELAYS = ["http", "https"], ["0", "20", "100"]
Plan = list[tuple[str, str, str, int]]
# Each kind of target once.
SHORT: Plan = [
    ("50000x4KiB", "http", "default", 0), *(("5000x16KiB", "http", "default", int(delay)) for delay in DELAYS),
    ("1x2GiB", "http", "size", 0), ("1x2GiB", "https", "size", 0),
    *((load, "http", check, 0) for load in LOADS[:2] for check in ("default", "md5"))]
# `aws` is the tool and the library below it.
PEERS = ["curl", "floor", "s5cmd", "rclone", "aws", "aws-cli", "aws-crt"]
KEPT = "Tests/Benchmarks/throughput.json"
# How it is measured: figures of another way are not kept beside these.
METHOD = 2
COUNTS = ("puts", "connections", "handshakes", "resumed")
# What a client may have hashed by the sink: what it asks a store with, not files.
MOST_HASHED = MIB

OPTIONS = {
    "--loads": ([], f"such as 5000x16KiB,1x2GiB; else {','.join(LOADS)}"),
    "--schemes": SCHEMES,
    "--verify": list(CHECKS),
    "--delay": ([], f"holds back every answer by so many ms, such as {','.join(DELAYS)}"),
    "--peers": (PEERS, "without it those that targets name"),
    "--rounds": 3,
    "--profile": (False, "one more round under `perf record` where a target is not reached: what takes its CPU time"),
    "--all": (False, "every load, scheme, check, delay and client: hours"),
    "--save": (False, f"into {KEPT}, in the place of what was measured before"),
}


def is_chosen(given: Given) -> bool:
    return bool(given.loads or given.schemes or given.verify or given.delay)


def plan(given: Given) -> Plan:
    """(load, scheme, verify, delay) in the order of the loads, so that each is made once."""
    if given.all:
        # Big files are not held up by answers.
        every = itertools.product(LOADS, SCHEMES, CHECKS, map(int, DELAYS))
        chosen = [one for one in every if not one[3] or not Load(one[0]).is_big]
    elif is_chosen(given):
        chosen = list(itertools.product(given.loads or LOADS, given.schemes or ["http"], given.verify or ["default"],
                                        map(int, given.delay or ["0"])))
    else:
        chosen = SHORT
    order = list(dict.fromkeys(one[0] for one in chosen))
    return sorted(chosen, key=lambda one: order.index(one[0]))


class Measurement:
    """Groups of rounds, one after the other, and what inlet failed at."""

    def __init__(self, folder: Path, given: Given) -> None:
        self.folder, self.given, self.failures = folder, given, []
        self.clients = [one for one in clients.clients() if one.name.startswith("inlet") or self.is_asked(one)]

    def is_asked(self, peer: Client) -> bool:
        if self.given.peers is None:
            return peer.is_compared or self.given.all
        return bool({peer.name, peer.name.partition("-")[0]} & set(self.given.peers))

    def one_round(self, client: Client, load: Load, group: Group, is_hashed: bool = False) -> dict[str, float]:
        """Ends the measurement when something else arrived than was sent. `is_hashed`: by the sink, which then knows what it
        got, and takes cores for it."""
        place, scheme = self.folder / "round", group["scheme"]
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        is_proved = group["verify"] != "size"
        with Sink(scheme, "md5" if is_proved else "size", group["delay"], client.ports[scheme == "https"],
                  "compare" if is_proved else "echo", load.sums if is_proved and not is_hashed else None) as sink:
            figures = client.send(sink, load, place, group["verify"])
            stats = load.check(client.name, sink)
        if stats["hashed"] > MOST_HASHED and not is_hashed:
            raise Failed(f"the sink hashed {stats['hashed']:,} bytes: clients.PART_SIZES lacks a size of its parts")
        return {key: round(value, 4) for key, value in figures.items()} | {"sink": stats["cpu_seconds"]} | {
            key: stats[key] for key in COUNTS}

    def leave_out(self, client: Client, reason: str, group: Group) -> None:
        print(f"left out: {client.name}: {reason}", flush=True)
        group["left_out"][client.name] = reason

    def tried(self, client: Client, load: Load, group: Group, **more: Any) -> dict[str, float] | None:
        """A round's figures; None when the client failed. A peer may. What inlet was asked for it has to do."""
        try:
            return self.one_round(client, load, group, **more)
        except (Failed, OSError) as error:
            self.leave_out(client, str(error), group)
            if client.name.startswith("inlet"):
                self.failures.append(Row(f"{title(group)}: {client.name}", str(error), "no failure", False, True))
            return None

    def able(self, load: Load, probe: Load, group: Group) -> list[Client]:
        """Those that can take part: without --all the one of our clients that the target names. Each sends two small files
        first, which the sink hashes."""
        able = []
        for client in self.clients:
            if client.name.startswith("inlet") and not self.given.all and client.name != aim(group).way:
                continue
            if reason := client.problem(load, group["verify"], group["delay"], self.given.all):
                # No failure: it says by itself that it has no such check, or is not there.
                self.leave_out(client, reason, group)
            elif self.tried(client, probe, group, is_hashed=True):
                able.append(self.fastest(client, load, group))
        return [client for client in able if client.name not in group["left_out"]]

    def fastest(self, client: Client, load: Load, group: Group) -> Client:
        """The client in the fastest of its variants, of which each sends the load once."""
        if load.is_big or not client.variants:
            return client
        found = {}
        for name, send in client.variants.items():
            if figures := self.tried(dataclasses.replace(client, send=send), load, group):
                found[name] = figures["seconds"]
                print(f"{client.name}, {name}: {load.count / figures['seconds']:,.0f} files/s", flush=True)
        best = min(found, key=found.get, default="")
        group["settings"][client.name] = best
        return dataclasses.replace(client, send=client.variants[best]) if best else client

    def measure(self, load: Load, probe: Load, scheme: str, verify: str, delay: int = 0) -> Group:
        """One load over one scheme with one check."""
        group: Group = {"load": load.name, "count": load.count, "size": load.size, "scheme": scheme, "verify": verify,
                        "delay": delay, "date": f"{datetime.date.today()}", "clients": {}, "left_out": {}, "settings": {}}
        print(f"\n{title(group)}", flush=True)
        able = self.able(load, probe, group)
        rounds = group["clients"] = {client.name: [] for client in able}
        for number in range(self.given.rounds):
            # Back and forth: what drifts with time must not favour one of them.
            for client in able if number % 2 == 0 else reversed(able):
                if client.name not in group["left_out"] and (client.is_compared or number == 0):
                    if figures := self.tried(client, load, group):
                        rounds[client.name].append(figures)
        return group

    def profile(self, load: Load, group: Group) -> None:
        """Of a way that did not reach a target: its CPU time by symbol and by thread."""
        way = aim(group).way
        if all(row.reached for row in target_rows(group) if row.what.startswith(way)):
            return
        if not perf.is_possible():
            return print("no profile: perf is not installed, or kernel.perf_event_paranoid forbids it", flush=True)
        path = self.folder / "perf.data"
        send = functools.partial(clients.run, way.rpartition(" ")[2], recording=path)
        self.one_round(Client(way, send), load, group)
        perf.show(f"{title(group)}: {way}", path)

    def run(self) -> list[Group]:
        groups, probe = [], Load("2x16KiB").make(self.folder / "probe")
        for name, chosen in itertools.groupby(plan(self.given), key=lambda one: one[0]):
            load = Load(name).make(self.folder / "source")
            for _, scheme, verify, delay in chosen:
                groups.append(self.measure(load, probe, scheme, verify, delay))
                show(groups[-1])
                if self.given.profile:
                    self.profile(load, groups[-1])
            shutil.rmtree(load.folder)
        return groups


def show(group: Group) -> None:
    lines = []
    for name in group["clients"]:
        if one := summary(group, name):
            spread = "" if one["rounds"] < 2 else f"{speed_text(group, one['least'])} - {speed_text(group, one['most'])}"
            handshakes = f"{one['handshakes']:.0f}/{one['resumed']:.0f}" if group["scheme"] == "https" else ""
            setting = group["settings"].get(name)
            lines.append([
                f"{name}, {setting}" if setting else name, one["rounds"], speed_text(group, one["speed"]), spread,
                f"{total(group) / one['seconds'] / MIB:,.0f}", f"{group['count'] / one['seconds']:,.1f}", f"{one['cpu']:.2f}",
                cost_text(group, one["cpu"]), f"{one['sink']:.2f}", f"{one['peak']:.1f}", f"{one['connections']:.0f}",
                handshakes, *(f"{one[key]:,.0f}" if key in one else "" for key in ("written", "journal"))])
    table(f"{title(group)}; objects and bytes checked",
          ["", "rounds", "median", "spread", "MiB/s", "files/s", "CPU s", "CPU", "sink CPU s", "own MiB", "connections",
           "TLS handshakes/resumed", "B written a file", "B of journal a file"], lines)


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip().partition("\n")[0]


def machine() -> dict[str, Any]:
    """Facts that figures depend on; no names."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    libcurl = next((word for word in said("curl", "-V").split() if word.startswith("libcurl/")), "")
    return {"cores": len(os.sched_getaffinity(0)), "cpu": model, "kernel": platform.release(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB, 1),
            "libcurl": libcurl.removeprefix("libcurl/"), "openssl": ssl.OPENSSL_VERSION,
            "inlet": said(binary(), "--version").removeprefix("inlet "), "build": os.environ.get("INLET_BUILD", "as given"),
            "method": METHOD}


def merged(old: list[Group], new: list[Group]) -> list[Group]:
    """The groups of an earlier run, those that were measured again replaced."""
    again = {title(group) for group in new}
    return [group for group in old if title(group) not in again] + new


def save(run: dict[str, Any]) -> None:
    """Into the kept file. What an earlier run measured and this one did not stays, if machine and method are the same."""
    path = ROOT / KEPT
    kept = json.loads(path.read_text())
    if all(kept["machine"].get(key) == run["machine"][key] for key in ("cores", "cpu", "memory_gib", "method")):
        run |= {"groups": merged(kept["groups"], run["groups"]), "peers": kept["peers"] | run["peers"]}
    for group in run["groups"]:
        group.setdefault("targets", [
            {"group": title(group), "what": row.what, "measured": row.measured, "target": row.target,
             "reached": row.reached} for row in target_rows(group)])
    # Big files first, plain before TLS.
    run["groups"].sort(key=lambda group: (not is_big(group), -group["size"], group["scheme"], group["verify"] != "size",
                                          group["verify"], group["delay"]))
    path.write_text(as_lines(run))
    path.with_suffix(".svg").write_text(draw(run["groups"]))
    print(f"\nkept: {KEPT} and its chart")


def as_lines(run: dict[str, Any]) -> str:
    """JSON with a line for each round: a change of one is a change of one line."""
    return re.sub(r"\n {5}{[^}]*}", lambda one: one[0][:7] + " ".join(one[0][7:-1].split()) + "}",
                  json.dumps(run, indent=1)) + "\n"


def others(folder: Path, given: Given) -> list[Row]:
    """The targets of the scenarios that send to no store, each small."""
    rows = []
    for name, scenario in (("folder", copying), ("GigHive", gighive)):
        small = argparse.Namespace(rounds=given.rounds, gib=2.0, unhashed=False)
        (place := folder / name).mkdir()
        rows += [row._replace(what=f"{name}: {row.what}") for row in scenario.run(place, small)[1]]
    return rows


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    measurement = Measurement(folder, given)
    groups, facts = measurement.run(), machine()
    used = {name for group in groups for name in group["clients"]}
    peers = {peer.name: {"version": peer.asked_version(), "does": peer.note} for peer in measurement.clients
             if peer.note and peer.name in used}
    rows = [row._replace(what=f"{title(group)}: {row.what}") for group in groups for row in target_rows(group)]
    if given.save:
        save({"machine": facts, "peers": peers, "groups": groups})
    if given.all or not is_chosen(given):
        rows += others(folder, given)
    return "targets", [*rows, *measurement.failures]
