"""The figures of throughput.py's rounds, and whether they reach what they should. No measuring here.

A group is one load, scheme and check, with the rounds of each client: {"load", "count", "size", "scheme", "verify", "delay",
"clients": {name: [{"seconds", "cpu", "rss", "sink", "puts", "connections", "handshakes", "resumed"}]}}.
"""

import statistics

from loads import BIG
from measure import GIB

MOST_RSS = 40
# Our ways that have targets of their own, of big and of small files. r2's presigned uploads hash only what `verify` asks for,
# as curl does; s3 signs as s5cmd does.
BIG_WAYS, SMALL_WAYS = ("inlet run r2", "inlet run s3", "inlet send r2"), ("inlet run s3", "inlet send s3")
# Checks that no peer has: `inlet run s3` alone is asked then.
OWN_CHECKS, OWN_WAY = ("crc32c", "sha256"), "inlet run s3"
# One full handshake for so many requests; connections that are opened at once cannot reuse each other's session.
REQUESTS_PER_HANDSHAKE, HANDSHAKES_AT_ONCE = 50, 4
UNMEASURED = "-"


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


def ways(group):
    """Our clients that the targets of this group name."""
    if group["verify"] in OWN_CHECKS:
        return (OWN_WAY,)
    return BIG_WAYS if is_big(group) else SMALL_WAYS


def hash_seconds(group, way, facts):
    """CPU seconds a GiB for what a client of ours has to hash: what `verify` asks for, and s3's signature over plain HTTP."""
    seconds = facts["md5_cpu_seconds_per_gib"] if group["verify"] == "md5" else 0
    if way.endswith("s3") and group["scheme"] == "http":
        seconds += facts.get("sha256_cpu_seconds_per_gib", 0)
    return seconds


def allowed(group, way, facts):
    """Bytes/s that the cores allow when sending (curl), receiving and hashing (the sink), and hashing here share them."""
    curl, gib = summary(group, "curl"), total(group) / GIB
    if not curl:
        return None
    return facts["cores"] / ((curl["cpu"] + curl["sink"]) / gib + hash_seconds(group, way, facts)) * GIB


def row(group, what, measured, target, reached):
    return {"group": title(group), "what": what, "measured": measured, "target": target, "reached": reached}


def ratio_row(group, way, peer, least, unit):
    """`way`'s speed, of the peer's."""
    ours, theirs = summary(group, way), summary(group, peer)
    ratio = ours["speed"] / theirs["speed"] if ours and theirs else None
    return row(group, f"{way}, of {peer}'s {unit}", UNMEASURED if ratio is None else f"{ratio:.2f}", f">= {least:.1f}",
               None if ratio is None else ratio >= least)


def hashed_row(group, way, facts):
    """1.5 x s5cmd, or nine tenths of what the cores allow, whichever is less: both have to be known."""
    ours, s5cmd, most = summary(group, way), summary(group, "s5cmd"), allowed(group, way, facts)
    if not ours or not s5cmd or most is None:
        return row(group, f"{way}, speed", UNMEASURED, ">= 1.5 x s5cmd, or 0.9 x what the cores allow", None)
    least, why = min((1.5 * s5cmd["speed"], "1.5 x s5cmd"), (0.9 * most, "0.9 x what the cores allow"))
    return row(group, f"{way}, speed", speed_text(group, ours["speed"]), f">= {speed_text(group, least)} ({why})",
               ours["speed"] >= least)


def speed_rows(group, facts):
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


def resource_rows(group, way):
    """CPU, memory and handshakes of one way."""
    ours, s5cmd = summary(group, way), summary(group, "s5cmd")
    if group["verify"] not in OWN_CHECKS:
        both = ours and s5cmd
        yield row(group, f"{way}, CPU s", f"{ours['cpu']:.2f}" if ours else UNMEASURED,
                  f"<= {s5cmd['cpu']:.2f} (s5cmd's)" if s5cmd else "<= s5cmd's",
                  ours["cpu"] <= s5cmd["cpu"] if both else None)
    yield row(group, f"{way}, peak RSS", f"{ours['peak']:.1f} MiB" if ours else UNMEASURED, f"<= {MOST_RSS} MiB",
              ours["peak"] <= MOST_RSS if ours else None)
    if group["scheme"] == "https":
        full = ours["handshakes"] - ours["resumed"] if ours else None
        most = max(HANDSHAKES_AT_ONCE, ours["puts"] // REQUESTS_PER_HANDSHAKE) if ours else HANDSHAKES_AT_ONCE
        yield row(group, f"{way}, full TLS handshakes", f"{full:.0f}" if ours else UNMEASURED,
                  f"<= {most:.0f}" + (f" for {ours['puts']:.0f} requests" if ours else ""), full <= most if ours else None)


def target_rows(group, facts):
    """The targets of this group, those too that nothing was measured of. With --all other clients of ours take part; their
    memory is held against the same."""
    yield from speed_rows(group, facts)
    named = ways(group)
    for way in named:
        yield from resource_rows(group, way)
    for name in group["clients"]:
        if name.startswith("inlet") and name not in named and group["clients"][name]:
            yield from (one for one in resource_rows(group, name) if "peak RSS" in one["what"])


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


FACTS = {"cores": 2, "md5_cpu_seconds_per_gib": 1.0, "sha256_cpu_seconds_per_gib": 1.0}


def expect(name, group, what, reached):
    rows = {one["what"]: one for one in target_rows(group, FACTS)}
    if what not in rows or rows[what]["reached"] is not reached:
        raise SystemExit(f"{name}: {what} must be {reached}: {rows.get(what)}")


def test_big():
    for ours, reached in ((2.0, True), (2.1, False)):
        for key, way in (("r2", "inlet run r2"), ("inlet send r2", "inlet send r2")):
            plain = sample_group(GIB, **{key: [sample(ours)]}, curl=[sample(2)])
            expect("plain", plain, f"{way}, of curl's bytes/s", reached)
            tls = sample_group(GIB, "https", **{key: [sample(ours + 0.2)]}, curl=[sample(2)])
            expect("TLS", tls, f"{way}, of curl's bytes/s", reached)
    expect("no curl", sample_group(GIB, r2=[sample(2)]), "inlet run r2, of curl's bytes/s", None)
    expect("no inlet", sample_group(GIB, curl=[sample(2)]), "inlet run r2, of curl's bytes/s", None)
    # Of 2 GiB: 0.5 curl + 1 sink + 1 MD5 CPU seconds per GiB on two cores: 0.8 GiB/s, of which nine tenths are asked for.
    # s3 signs as well: 2 / 3.5, of which nine tenths are 0.514 GiB/s; without MD5 it is as r2 with it.
    slow, fast = [sample(2)], [sample(9)]
    for key, verify, speed, s5cmd, reached in (
        ("r2", "md5", 0.73, slow, True), ("r2", "md5", 0.71, slow, False), ("r2", "md5", 0.34, fast, True),
        ("r2", "md5", 0.33, fast, False), ("s3", "md5", 0.52, slow, True), ("s3", "md5", 0.51, slow, False),
        ("s3", "size", 0.73, slow, True), ("s3", "size", 0.71, slow, False), ("s3", "size", 0.34, fast, True),
        ("r2", "md5", 9, [], None),
    ):
        group = sample_group(GIB, verify=verify, **{key: [sample(2 / speed)]}, curl=[sample(2)], s5cmd=s5cmd)
        expect(f"{key}, {verify}", group, f"inlet run {key}, speed", reached)
    expect("s3, no curl", sample_group(GIB, s3=[sample(1)], s5cmd=[sample(2)]), "inlet run s3, speed", None)


def test_small():
    for delay, verify, ours, reached in ((0, "size", 2.0, True), (0, "size", 2.1, False), (0, "md5", 2.1, False),
                                         (30, "size", 3.7, True), (30, "size", 3.8, False)):
        group = sample_group(99, verify=verify, delay=delay, s3=[sample(ours)], s5cmd=[sample(3)])
        expect("small", group, "inlet run s3, of s5cmd's files/s", reached)
    expect("no s5cmd", sample_group(99, s3=[sample(1)]), "inlet run s3, of s5cmd's files/s", None)


def test_resources():
    for size, way in ((99, "inlet run s3"), (99, "inlet send s3"), (GIB, "inlet run r2"), (GIB, "inlet run s3"),
                      (GIB, "inlet send r2")):
        for cpu, rss, reached in ((1.0, 40.0, True), (1.1, 40.1, False)):
            group = sample_group(size, **{way: [sample(1, cpu), sample(1, cpu, rss=rss)]}, s5cmd=[sample(1, 1.0)])
            expect("CPU", group, f"{way}, CPU s", reached)
            expect("RSS", group, f"{way}, peak RSS", reached)
        expect("nothing", sample_group(size), f"{way}, CPU s", None)
        expect("nothing", sample_group(size), f"{way}, peak RSS", None)
        for full, reached in ((4, True), (5, False)):
            group = sample_group(size, "https", **{way: [sample(1, handshakes=full + 3, resumed=3)]})
            expect("handshakes", group, f"{way}, full TLS handshakes", reached)
    own = [one["what"] for one in target_rows(sample_group(GIB, verify="crc32c", s3=[sample(1)]), FACTS)]
    if own != ["inlet run s3, peak RSS"]:
        raise SystemExit(f"a check of our own has other targets: {own}")
    expect("--all", sample_group(GIB, **{"inlet send s3": [sample(1, rss=41)]}), "inlet send s3, peak RSS", False)


def self_test():
    rounds = [sample(2), sample(1), sample(4)]
    middle = summary(sample_group(GIB, r2=rounds), "inlet run r2")
    if (middle["speed"], middle["least"], middle["most"]) != (GIB, GIB / 2, 2 * GIB):
        raise SystemExit(f"summary is wrong: {middle}")
    test_big()
    test_small()
    test_resources()
    old, new = sample_group(1), sample_group(1, r2=rounds)
    if merged([old, sample_group(1, "https")], [new]) != [sample_group(1, "https"), new]:
        raise SystemExit("merged is wrong")
    print("ok    targets")
