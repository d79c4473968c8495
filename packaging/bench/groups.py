"""A group of throughput.py: its figures, and whether they reach what they should.

A group is one load, scheme, check and delay, with the rounds of each client: {"load", "count", "size", "scheme", "verify",
"delay", "clients": {name: [{"seconds", "cpu", "own", "sink", "puts", "connections", "handshakes", "resumed"}]}}. A round of
`inlet run` also has "written" and "journal", bytes a file.
"""

from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from clients import BIG
from report import GIB, Row, bounded

# MiB of an agent's own, all its processes together.
MOST_OWN = 24
# Checks that no peer has: they only tell what they cost.
OWN_CHECKS = ("crc64nvme", "crc32c", "sha256")
# One full handshake for so many requests; connections that are opened at once cannot reuse each other's session.
REQUESTS_PER_HANDSHAKE, HANDSHAKES_AT_ONCE = 50, 4

Group = dict[str, Any]


class Aim(NamedTuple):
    """What a way is held against: so much of a peer's speed, with so much of its CPU time."""

    way: str
    peer: str = ""
    speed: float | None = None
    cpu: float | None = None


def aim(group: Group) -> Aim:
    """r2's presigned uploads hash only what `verify` asks for, as curl does; s3 signs as s5cmd does."""
    verify, is_plain = group["verify"], group["scheme"] == "http"
    if verify in OWN_CHECKS:
        return Aim("inlet run s3")
    if not is_big(group):
        # An answer that is late by itself leaves only how many are under way to be compared.
        is_small = is_plain and not group["delay"] and group["size"] <= 16 << 10
        return Aim("inlet run s3", "s5cmd", 2.5 if is_small else 1.5, 0.45 if is_small and group["count"] >= 50_000 else 1.0)
    if verify == "size":
        return Aim("inlet run r2", "curl", 1.2 if is_plain else 1.0)
    return Aim("inlet run s3", "s5cmd", 2.0, 0.5) if is_plain else Aim("inlet run s3", "s5cmd", 1.5, 1.0)


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
        "speed": median(speeds), "least": min(speeds), "most": max(speeds), "peak": max(one["own"] for one in rounds),
        "rounds": len(rounds)}


def speed_text(group: Group, speed: float) -> str:
    return f"{speed / GIB:.2f} GiB/s" if is_big(group) else f"{speed:,.0f} files/s"


def cost_text(group: Group, cpu: float) -> str:
    return f"{cpu / (total(group) / GIB):.2f} s/GiB" if is_big(group) else f"{cpu / group['count'] * 1e6:,.0f} µs/file"


def share_row(group: Group, way: str, peer: str, key: str, bound: float, unit: str, is_least: bool) -> Row:
    ours, theirs = summary(group, way), summary(group, peer)
    share = ours[key] / theirs[key] if ours and theirs and theirs[key] else None
    return bounded(f"{way}, of {peer}'s {unit}", share, bound, "", 2, is_least=is_least)


def own_rows(group: Group, way: str) -> Iterator[Row]:
    """What is held against no peer."""
    ours = summary(group, way)
    yield bounded(f"{way}, own memory", ours and ours["peak"], MOST_OWN, " MiB")
    if group["scheme"] == "https":
        most = max(HANDSHAKES_AT_ONCE, ours["puts"] // REQUESTS_PER_HANDSHAKE if ours else 0)
        yield bounded(f"{way}, full TLS handshakes", ours and ours["handshakes"] - ours["resumed"], most, "", 0)


def target_rows(group: Group) -> Iterator[Row]:
    """The targets of this group, those too that nothing was measured of. With --all other clients of ours take part, which have
    only the bounds of their own."""
    way, peer, speed, cpu = aim(group)
    if speed:
        yield share_row(group, way, peer, "speed", speed, "bytes/s" if is_big(group) else "files/s", True)
    if cpu:
        yield share_row(group, way, peer, "cpu", cpu, "CPU time", False)
    others = [name for name, rounds in group["clients"].items() if rounds and name.startswith("inlet") and name != way]
    for name in (way, *others):
        yield from own_rows(group, name)
