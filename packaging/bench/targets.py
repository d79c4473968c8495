"""The figures of throughput.py's rounds, and whether they reach what they should. No measuring here.

A group is one load, scheme and check, with the rounds of each client: {"load", "count", "size", "scheme", "verify", "delay",
"clients": {name: [{"seconds", "cpu", "rss", "sink", "puts", "connections", "handshakes", "resumed"}]}}.
"""

import statistics

from loads import BIG
from measure import GIB

MOST_RSS = 40
# Which of our ways is held against which peer: r2's presigned uploads hash only what `verify` asks for, as curl does; s3
# signs as s5cmd does.
OURS_BIG, OURS_SMALL = "inlet run r2", "inlet run s3"
# One full handshake for so many requests; connections that are opened at once cannot reuse each other's session.
REQUESTS_PER_HANDSHAKE, HANDSHAKES_AT_ONCE = 50, 4


def total(group):
    return group["count"] * group["size"]


def is_big(group):
    return group["size"] >= BIG


def title(group):
    late = f", {group['delay']} ms an answer" if group["delay"] else ""
    return f"{group['load']}, {group['scheme']}, verify: {group['verify']}{late}"


def summary(group, name):
    """Medians of a client's rounds, and the spread of its speed; None when it has none. Speeds are files/s, or bytes/s of
    big files."""
    rounds = group["clients"].get(name)
    if not rounds:
        return None
    amount = total(group) if is_big(group) else group["count"]
    speeds = [amount / one["seconds"] for one in rounds]
    found = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    return found | {"speed": statistics.median(speeds), "least": min(speeds), "most": max(speeds),
                    "peak": max(one["rss"] for one in rounds), "rounds": len(rounds)}


def speed_text(group, speed):
    return f"{speed / GIB:.2f} GiB/s" if is_big(group) else f"{speed:,.0f} files/s"


def allowed(group, cores, md5_per_gib):
    """Bytes/s that the cores allow when sending (curl), receiving and hashing (the sink), and hashing here share them."""
    curl, gib = summary(group, "curl"), total(group) / GIB
    if not curl or not md5_per_gib:
        return None
    return cores / ((curl["cpu"] + curl["sink"]) / gib + md5_per_gib) * GIB


def row(group, what, measured, target, reached):
    return {"group": title(group), "what": what, "measured": measured, "target": target, "reached": reached}


def big_rows(group, ours, cores, md5_per_gib):
    curl, s5cmd = summary(group, "curl"), summary(group, "s5cmd")
    if group["verify"] == "size" and curl:
        least = 0.9 if group["scheme"] == "https" else 1.0
        ratio = ours["speed"] / curl["speed"]
        yield row(group, "of curl's bytes/s", f"{ratio:.2f}", f">= {least:.1f}", ratio >= least)
    if group["verify"] == "md5" and group["scheme"] == "http":
        bounds = []
        if s5cmd:
            bounds.append((1.5 * s5cmd["speed"], "1.5 x s5cmd"))
        if (most := allowed(group, cores, md5_per_gib)) is not None:
            bounds.append((0.9 * most, "0.9 x what the cores allow"))
        if bounds:
            least, why = min(bounds)
            yield row(group, "speed", speed_text(group, ours["speed"]), f">= {speed_text(group, least)} ({why})",
                      ours["speed"] >= least)


def small_rows(group, ours):
    s5cmd = summary(group, "s5cmd")
    if not s5cmd:
        return
    # An answer that is late by itself leaves only the number of connections to be compared.
    least = 0.8 if group["delay"] else 1.5
    ratio = ours["speed"] / s5cmd["speed"]
    yield row(group, "of s5cmd's files/s", f"{ratio:.2f}", f">= {least:.1f}", ratio >= least)


def target_rows(group, cores, md5_per_gib):
    """The targets that this group can tell something of."""
    name = OURS_BIG if is_big(group) else OURS_SMALL
    ours = summary(group, name)
    if ours:
        yield from (big_rows(group, ours, cores, md5_per_gib) if is_big(group) else small_rows(group, ours))
        s5cmd = summary(group, "s5cmd")
        if s5cmd:
            yield row(group, "CPU s", f"{ours['cpu']:.2f}", f"<= {s5cmd['cpu']:.2f} (s5cmd's)", ours["cpu"] <= s5cmd["cpu"])
        if group["scheme"] == "https":
            full = ours["handshakes"] - ours["resumed"]
            most = max(HANDSHAKES_AT_ONCE, ours["puts"] // REQUESTS_PER_HANDSHAKE)
            yield row(group, "full TLS handshakes", f"{full:.0f}", f"<= {most:.0f} for {ours['puts']:.0f} requests",
                      full <= most)
    for name in group["clients"]:
        if name.startswith("inlet"):
            peak = summary(group, name)["peak"]
            yield row(group, f"peak RSS, {name}", f"{peak:.1f} MiB", f"<= {MOST_RSS}", peak <= MOST_RSS)


def merged(old, new):
    """The groups of an earlier run, those that were measured again replaced."""
    again = {title(group) for group in new}
    return [group for group in old if title(group) not in again] + new


# Their own test ------------------------------------------------------------------------------------------------------


def sample(seconds, cpu=1.0, **more):
    return {"seconds": seconds, "cpu": cpu, "rss": 30.0, "sink": 2.0, "puts": 100, "connections": 9, "handshakes": 0,
            "resumed": 0} | more


def sample_group(size, scheme="http", verify="size", delay=0, **clients):
    names = {"r2": "inlet run r2", "s3": "inlet run s3"}
    rounds = {names.get(name, name): value for name, value in clients.items()}
    return {"load": "load", "count": 2, "size": size, "scheme": scheme, "verify": verify, "delay": delay, "clients": rounds}


def expect(name, group, what, reached):
    rows = {one["what"]: one for one in target_rows(group, 2, 1.0)}
    if what not in rows or rows[what]["reached"] != reached:
        raise SystemExit(f"{name}: {what} must be {'reached' if reached else 'missed'}: {rows.get(what)}")


def self_test():
    rounds = [sample(2), sample(1), sample(4)]
    middle = summary(sample_group(GIB, r2=rounds), "inlet run r2")
    if (middle["speed"], middle["least"], middle["most"]) != (GIB, GIB / 2, 2 * GIB):
        raise SystemExit(f"summary is wrong: {middle}")
    for ours, reached in ((2.0, True), (2.1, False)):
        expect("plain", sample_group(GIB, r2=[sample(ours)], curl=[sample(2)]), "of curl's bytes/s", reached)
        tls = sample_group(GIB, "https", r2=[sample(ours + 0.2)], curl=[sample(2)])
        expect("TLS", tls, "of curl's bytes/s", reached)
    # Of 2 GiB: 0.5 curl + 1 sink + 1 MD5 CPU seconds per GiB on two cores: 0.8 GiB/s, of which nine tenths are asked for.
    slow, fast = [sample(2)], [sample(9)]
    for speed, s5cmd, reached in ((0.73, slow, True), (0.71, slow, False), (0.34, fast, True), (0.33, fast, False)):
        group = sample_group(GIB, verify="md5", r2=[sample(2 / speed)], curl=[sample(2)], s5cmd=s5cmd)
        expect("MD5", group, "speed", reached)
    for delay, ours, reached in ((0, 2.0, True), (0, 2.1, False), (30, 3.7, True), (30, 3.8, False)):
        expect("small", sample_group(99, delay=delay, s3=[sample(ours)], s5cmd=[sample(3)]), "of s5cmd's files/s", reached)
    expect("CPU", sample_group(99, s3=[sample(1, 1.1)], s5cmd=[sample(1, 1.0)]), "CPU s", False)
    expect("RSS", sample_group(99, s3=[sample(1), sample(1, rss=41.0)]), "peak RSS, inlet run s3", False)
    for full, reached in ((4, True), (5, False)):
        group = sample_group(99, "https", s3=[sample(1, handshakes=full + 3, resumed=3)])
        expect("handshakes", group, "full TLS handshakes", reached)
    old, new = sample_group(1), sample_group(1, r2=rounds)
    if merged([old, sample_group(1, "https")], [new]) != [sample_group(1, "https"), new]:
        raise SystemExit("merged is wrong")
    print("ok    targets")
