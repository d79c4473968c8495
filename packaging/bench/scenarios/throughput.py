"""Inlet and its peers, sending the same files to the same discarding sink.

Rounds are interleaved, medians are told; after every round each object's name, size and, of small ones, MD5 are compared.

A group is one load, scheme and check, with the rounds of each client: {"load", "count", "size", "scheme", "verify", "delay",
"clients": {name: [{"seconds", "cpu", "rss", "sink", "puts", "connections", "handshakes", "resumed"}]}}.
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
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

from agent import HERE, ROOT, binary
from clients import BIG, CHECKS, Client, Load, clients
from report import GIB, Failed, Given, Row, bounded, table
from servers import Sink

MOST_RSS = 40
# Our ways that have targets of their own, of big and of small files. r2's presigned uploads hash only what `verify` asks for,
# as curl does; s3 signs as s5cmd does.
BIG_WAYS, SMALL_WAYS = ("inlet run r2", "inlet run s3", "inlet send r2"), ("inlet run s3", "inlet send s3")
# Checks that no peer has: `inlet run s3` alone is asked then.
OWN_CHECKS, OWN_WAY = ("crc32c", "sha256"), "inlet run s3"
# One full handshake for so many requests; connections that are opened at once cannot reuse each other's session.
REQUESTS_PER_HANDSHAKE, HANDSHAKES_AT_ONCE = 50, 4

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

Group = dict[str, Any]

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
                self.failures.append(Row(f"{title(group)}: {client.name}", str(error), "no failure", False, True))
            return None

    def able(self, load: Load, probe: Load, group: Group) -> list[Client]:
        """Those that can take part: without --all only those of our clients that targets name. Each sends two small files
        first."""
        able = []
        for client in self.clients:
            if client.name.startswith("inlet") and not self.given.all and client.name not in ways(group):
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
        print(f"\n{title(group)}", flush=True)
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


# Figures of a group, and whether they reach what they should


def total(group: Group) -> int:
    return group["count"] * group["size"]


def is_big(group: Group) -> bool:
    return group["size"] >= BIG


def title(group: Group) -> str:
    late = f", {group['delay']} ms an answer" if group["delay"] else ""
    return f"{group['load']}, {group['scheme']}, verify: {group['verify']}{late}"


def summary(group: Group, name: str) -> dict[str, float] | None:
    """Medians of a client's rounds, and the spread of its speed; None when it has none. Speeds are files/s, or bytes/s of
    big files."""
    rounds = group["clients"].get(name)
    if not rounds:
        return None
    amount = total(group) if is_big(group) else group["count"]
    speeds = [amount / one["seconds"] for one in rounds]
    return {key: median(one[key] for one in rounds) for key in rounds[0]} | {
        "speed": median(speeds), "least": min(speeds), "most": max(speeds), "peak": max(one["rss"] for one in rounds),
        "rounds": len(rounds)}


def speed_text(group: Group, speed: float) -> str:
    return f"{speed / GIB:.2f} GiB/s" if is_big(group) else f"{speed:,.0f} files/s"


def ways(group: Group) -> tuple[str, ...]:
    """Our clients that the targets of this group name."""
    return (OWN_WAY,) if group["verify"] in OWN_CHECKS else BIG_WAYS if is_big(group) else SMALL_WAYS


def allowed(group: Group, way: str, facts: dict[str, Any]) -> float | None:
    """Bytes/s that the cores allow when sending (curl), receiving and hashing (the sink), and hashing here share them: what
    `verify` asks for, and s3's signature over plain HTTP."""
    if not (curl := summary(group, "curl")):
        return None
    hashing = facts["md5_cpu_seconds_per_gib"] if group["verify"] == "md5" else 0
    if way.endswith("s3") and group["scheme"] == "http":
        hashing += facts.get("sha256_cpu_seconds_per_gib", 0)
    return facts["cores"] / ((curl["cpu"] + curl["sink"]) / (total(group) / GIB) + hashing) * GIB


def ratio_row(group: Group, way: str, peer: str, least: float, unit: str) -> Row:
    """`way`'s speed, of the peer's."""
    ours, theirs = summary(group, way), summary(group, peer)
    ratio = ours["speed"] / theirs["speed"] if ours and theirs else None
    return bounded(f"{way}, of {peer}'s {unit}", ratio, least, "", 2, is_least=True)


def hashed_row(group: Group, way: str, facts: dict[str, Any]) -> Row:
    """1.5 x s5cmd, or nine tenths of what the cores allow, whichever is less: both have to be known."""
    ours, s5cmd, most = summary(group, way), summary(group, "s5cmd"), allowed(group, way, facts)
    if not ours or not s5cmd or most is None:
        return Row(f"{way}, speed", "-", ">= 1.5 x s5cmd, or 0.9 x what the cores allow", None)
    least, why = min((1.5 * s5cmd["speed"], "1.5 x s5cmd"), (0.9 * most, "0.9 x what the cores allow"))
    return Row(f"{way}, speed", speed_text(group, ours["speed"]), f">= {speed_text(group, least)} ({why})",
               ours["speed"] >= least)


def speed_rows(group: Group, facts: dict[str, Any]) -> Iterator[Row]:
    if group["verify"] in OWN_CHECKS:
        return
    if not is_big(group):
        # An answer that is late by itself leaves only the number of connections to be compared.
        yield ratio_row(group, "inlet run s3", "s5cmd", 0.8 if group["delay"] else 1.5, "files/s")
        return
    for way in BIG_WAYS:
        if group["verify"] == "md5" or way.endswith("s3"):
            yield hashed_row(group, way, facts)
        else:
            yield ratio_row(group, way, "curl", 0.9 if group["scheme"] == "https" else 1.0, "bytes/s")


def resource_rows(group: Group, way: str) -> Iterator[Row]:
    """CPU, memory and handshakes of one way."""
    ours, s5cmd = summary(group, way) or {}, summary(group, "s5cmd") or {}
    if group["verify"] not in OWN_CHECKS:
        yield bounded(f"{way}, CPU s, beside s5cmd's", ours.get("cpu"), s5cmd.get("cpu"), "", 2)
    yield bounded(f"{way}, peak RSS", ours.get("peak"), MOST_RSS, " MiB")
    if group["scheme"] == "https":
        most = max(HANDSHAKES_AT_ONCE, ours.get("puts", 0) // REQUESTS_PER_HANDSHAKE)
        yield bounded(f"{way}, full TLS handshakes", ours["handshakes"] - ours["resumed"] if ours else None, most, "", 0)


def target_rows(group: Group, facts: dict[str, Any]) -> Iterator[Row]:
    """The targets of this group, those too that nothing was measured of. With --all other clients of ours take part; their
    memory is held against the same."""
    yield from speed_rows(group, facts)
    for way in ways(group):
        yield from resource_rows(group, way)
    for name, rounds in group["clients"].items():
        if name.startswith("inlet") and name not in ways(group) and rounds:
            yield from (row for row in resource_rows(group, name) if "peak RSS" in row.what)


# The chart: a panel a load, a bar a client

# Its style is chart.css: colours that stand out on white as on black; text follows what the reader prefers.
COLUMNS, PANEL, GAP, MARGIN = 2, 470, 30, 20
NAME, BAR, LINE, TITLE = 96, 180, 22, 34


def text(x: float, y: float, words: str, kind: str = "", end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"{anchor}>{escape(words)}</text>'


def bars(group: Group, left: float, top: float) -> Iterator[str]:
    """The lines of one panel below its title."""
    figures = [(name, one) for name in group["clients"] if (one := summary(group, name))]
    most = max((one["most"] for _, one in figures), default=1)
    for number, (name, one) in enumerate(figures):
        y, width, is_many = top + number * LINE, one["speed"] / most * BAR, one["rounds"] > 1
        low, high = (left + NAME + one[key] / most * BAR for key in ("least", "most"))
        yield text(left + NAME - 8, y + 12, name, end=True)
        yield (f'<rect x="{left + NAME}" y="{y}" width="{max(width, 1):.1f}" height="{LINE - 6}" rx="2" '
               f'class="{"inlet" if name.startswith("inlet") else "peer"}"/>')
        if is_many:
            yield f'<path d="M{low:.1f} {y + LINE / 2 - 3:.1f}H{high:.1f}" class="spread"/>'
        beside, said = max(left + NAME + width, high if is_many else 0) + 6, speed_text(group, one["speed"])
        yield text(beside, y + 12, said)
        yield text(beside + 7 * len(said) + 4, y + 12, f"{one['cpu']:.1f} CPU s, {one['rss']:.0f} MiB", "less")


def height(group: Group) -> int:
    return TITLE + LINE * sum(1 for rounds in group["clients"].values() if rounds) + GAP


def draw(groups: list[Group]) -> str:
    """The panels, row by row; each row is as high as its highest."""
    shapes, top = [], MARGIN
    for at in range(0, len(groups), COLUMNS):
        for column, group in enumerate(groups[at:at + COLUMNS]):
            left = MARGIN + column * (PANEL + GAP)
            shapes += [text(left, top + 14, title(group), "title"), *bars(group, left, top + TITLE - 8)]
        top += max(map(height, groups[at:at + COLUMNS]))
    width = 2 * MARGIN + COLUMNS * PANEL + (COLUMNS - 1) * GAP
    shapes.append(text(MARGIN, top, "Bars are medians, lines the slowest to the fastest round; longer is faster. CPU seconds "
                       "and peak memory are the client's.", "less"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + MARGIN}" '
            f'viewBox="0 0 {width} {top + MARGIN}" role="img" aria-label="Throughput of inlet and of its peers">\n'
            f"<style>{(HERE / 'chart.css').read_text()}</style>\n" + "\n".join(shapes) + "\n</svg>\n")


# What was found


def show(group: Group) -> None:
    lines = []
    for name in group["clients"]:
        if one := summary(group, name):
            spread = "" if one["rounds"] < 2 else f"{speed_text(group, one['least'])} - {speed_text(group, one['most'])}"
            handshakes = f"{one['handshakes']:.0f}/{one['resumed']:.0f}" if group["scheme"] == "https" else ""
            lines.append([
                name, one["rounds"], speed_text(group, one["speed"]), spread,
                f"{total(group) / one['seconds'] / (1 << 20):,.0f}", f"{group['count'] / one['seconds']:,.1f}",
                f"{one['cpu']:.2f}", f"{one['sink']:.2f}", f"{one['peak']:.1f}", f"{one['connections']:.0f}", handshakes])
    table(f"{title(group)}; objects and bytes checked",
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
    return [row._replace(what=f"{title(group)}: {row.what}") for row in target_rows(group, facts)]


def merged(old: list[Group], new: list[Group]) -> list[Group]:
    """The groups of an earlier run, those that were measured again replaced."""
    again = {title(group) for group in new}
    return [group for group in old if title(group) not in again] + new


def save(run: dict[str, Any]) -> None:
    """Into the kept file. What an earlier run measured and this one did not stays, if the machine is the same."""
    path = ROOT / KEPT
    kept = json.loads(path.read_text())
    if all(kept["machine"].get(key) == run["machine"][key] for key in ("cores", "cpu", "memory_gib")):
        run |= {"groups": merged(kept["groups"], run["groups"]), "peers": kept["peers"] | run["peers"]}
    for group in run["groups"]:
        group.setdefault("targets", [
            {"group": title(group), "what": row.what, "measured": row.measured, "target": row.target,
             "reached": row.reached} for row in target_rows(group, run["machine"])])
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
