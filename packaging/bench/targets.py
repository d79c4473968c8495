"""The figures of throughput.py's rounds, and whether they reach what they should. No measuring here.

A group is one load, scheme and check, with the rounds of each client: {"load", "count", "size", "scheme", "verify", "delay",
"clients": {name: [{"seconds", "cpu", "rss", "sink", "puts", "connections", "handshakes", "resumed"}]}}.
"""

from collections.abc import Iterator
from statistics import median
from typing import Any

from clients import BIG
from report import GIB, Row, bounded

MOST_RSS = 40
# Our ways that have targets of their own, of big and of small files. r2's presigned uploads hash only what `verify` asks for,
# as curl does; s3 signs as s5cmd does.
BIG_WAYS, SMALL_WAYS = ("inlet run r2", "inlet run s3", "inlet send r2"), ("inlet run s3", "inlet send s3")
# Checks that no peer has: `inlet run s3` alone is asked then.
OWN_CHECKS, OWN_WAY = ("crc32c", "sha256"), "inlet run s3"
# One full handshake for so many requests; connections that are opened at once cannot reuse each other's session.
REQUESTS_PER_HANDSHAKE, HANDSHAKES_AT_ONCE = 50, 4

Group = dict[str, Any]


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
