"""Inlet and its peers, sending the same files to the same discarding sink. Run throughput.sh. outcome.py has the exit codes.

Rounds are interleaved, medians are told; after every round each object's name, size and, of small ones, MD5 are compared.
"""

import argparse
import contextlib
import datetime
import io
import itertools
import shutil
import sys

import chart
import loads
import outcome
import results
import targets
from clients import Client, CommandFailed, Run, Send, fresh
from loads import Load
from measure import Workspace
from peers import PEERS
from s3_sink import Sink, build, make_certificates

LOADS = ["1x5GiB", "30x256MiB", "10000x256KiB", "5000x16KiB", "50000x4KiB"]
SCHEMES, CHECKS = ["http", "https"], ["size", "md5", "crc32c", "sha256"]
# Ends within a quarter of an hour on two cores: every load once, and one of each kind with TLS and with the other checks.
SHORT = [(load, "http", "size") for load in LOADS] + [
    ("1x5GiB", "http", "md5"), ("1x5GiB", "http", "crc32c"), ("1x5GiB", "http", "sha256"),
    ("1x5GiB", "https", "size"), ("5000x16KiB", "http", "md5"), ("5000x16KiB", "https", "size")]


def plan(given):
    """(load, scheme, verify) in the order of the loads, so that each is made once."""
    if given.all:
        chosen = itertools.product(LOADS, SCHEMES, CHECKS)
    elif given.loads or given.schemes or given.verify:
        chosen = itertools.product(given.loads or LOADS, given.schemes or ["http"], given.verify or ["size"])
    else:
        chosen = SHORT
    chosen = list(chosen)
    order = list(dict.fromkeys(load for load, _, _ in chosen))
    return sorted(chosen, key=lambda one: order.index(one[0]))


def names_of(peer):
    """What a peer is asked for by: `aws` is the tool and the library below it."""
    return {peer.name, peer.name.partition("-")[0]}


def all_clients(given):
    """Both kinds of destination by both commands, and the peers that were asked for."""
    ours = [Run("r2"), Run("s3"), Send("r2"), Send("s3")]
    clients = ours + [kind() for kind in PEERS if given.peers is None or names_of(kind) & set(given.peers)]
    for client in clients:
        client.connections = given.connections
        if given.all:
            client.most_files = 1 << 30
    return clients


def is_asked(client, group, given):
    """Without --all those of our clients that targets name. With s3 `inlet run` takes part in big files too, which it signs as
    s5cmd does."""
    return given.all or not client.name.startswith("inlet") or client.name in targets.ways(group)


class Group:
    """One load over one scheme with one check."""

    def __init__(self, folder, load, scheme, verify, given):
        self.folder, self.load, self.scheme, self.verify, self.given = folder, load, scheme, verify, given
        self.etag = "md5" if verify == "md5" else "size"

    def one_round(self, client, load):
        """What is told of it; ends the measurement when something else arrived than was sent."""
        port = client.sink_port(self.scheme)
        with Sink(self.folder, self.scheme, self.etag, self.given.delay, port) as sink:
            seconds, cpu, rss = client.send(sink, load, fresh(self.folder, "round"))
            stats = loads.check(client.name, load, sink)
        return {"seconds": round(seconds, 4), "cpu": round(cpu, 3), "rss": round(rss, 1), "sink": stats["cpu_seconds"]} | {
            key: stats[key] for key in ("puts", "connections", "handshakes", "resumed")}

    def facts(self):
        """The group as targets.py takes it, without rounds."""
        return {"load": self.load.name, "count": self.load.count, "size": self.load.size, "scheme": self.scheme,
                "verify": self.verify, "delay": self.given.delay,
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "clients": {}, "left_out": {}}

    def leave_out(self, client, reason, found, failures):
        """A peer may be left out. What inlet was asked for it has to do."""
        print(f"left out: {client.name}: {reason}", flush=True)
        found["left_out"][client.name] = reason
        if client.name.startswith("inlet"):
            failures.append(f"{targets.title(found)}: {client.name}: {reason}")

    def tried(self, client, load, found, failures):
        """A round's figures; None when the client failed."""
        try:
            return self.one_round(client, load)
        except (CommandFailed, OSError) as error:
            self.leave_out(client, str(error), found, failures)
            return None

    def able(self, clients, probe, found, failures):
        """Those that can take part. Each sends two small files first."""
        able = []
        for client in clients:
            if not is_asked(client, found, self.given):
                continue
            if reason := client.problem(self.load, self.scheme, self.verify):
                # No failure: it says by itself that it has no such check, or is not there.
                print(f"left out: {client.name}: {reason}", flush=True)
                found["left_out"][client.name] = reason
            elif self.tried(client, probe, found, failures):
                able.append(client)
        return able

    def measure(self, clients, probe, failures):
        """- Parameter failures: what inlet could not do is added."""
        print(f"\n{self.load.name}, {self.scheme}, verify: {self.verify}", flush=True)
        found = self.facts()
        able = self.able(clients, probe, found, failures)
        rounds = found["clients"] = {client.name: [] for client in able}
        for number in range(self.given.rounds):
            for client in able:
                if client.name in found["left_out"] or not client.takes_part(number, self.load, self.given):
                    continue
                if figures := self.tried(client, self.load, found, failures):
                    rounds[client.name].append(figures)
        return found


def measure_all(given):
    """The groups, the peers that took part, and what inlet failed at."""
    clients, groups, failures = all_clients(given), [], []
    with Workspace() as folder:
        build(folder)
        make_certificates(folder)
        probe = Load("2x16KiB").make(folder / "probe")
        for name, chosen in itertools.groupby(plan(given), key=lambda one: one[0]):
            source = folder / "source"
            load = Load(name).make(source)
            for _, scheme, verify in chosen:
                group = Group(folder, load, scheme, verify, given).measure(clients, probe, failures)
                results.show(group)
                groups.append(group)
            shutil.rmtree(source)
    used = {name for group in groups for name in group["clients"]}
    peers = {client.name: {"version": client.version(), "does": client.note}
             for client in clients if client.name in used and not client.name.startswith("inlet")}
    return groups, peers, failures


class Scripted(Client):
    """A client whose rounds end as they are told to: seconds, or why it fails."""

    def __init__(self, name, *rounds):
        self.name, self.is_compared, self.rounds = name, True, list(rounds)

    def next_round(self, load):
        now = self.rounds.pop(0)
        if isinstance(now, str):
            raise CommandFailed(now)
        return targets.sample(now)


def test_failures():
    """Peers that fail are left out; that inlet fails at something is told, and is no success."""
    given = options().parse_args(["--rounds", "2"])
    for clients, failed, left_out, code in (
        ([Scripted("inlet run s3", 1, 1, 1), Scripted("inlet send s3", 1, 1, 1), Scripted("s5cmd", 1, 2, 2)], 0, 0, 0),
        ([Scripted("inlet run s3", 1, 1, 1), Scripted("inlet send s3", 1, 1, 1), Scripted("s5cmd", "no")], 0, 1, 3),
        ([Scripted("inlet run s3", 1, 1, 1), Scripted("inlet send s3", "no"), Scripted("s5cmd", 1, 2, 2)], 1, 1, 1),
        ([Scripted("inlet run s3", 1, 1, "no"), Scripted("inlet send s3", 1, 1, 1), Scripted("s5cmd", 1, 2, 2)], 1, 1, 1),
        ([Scripted("inlet run s3", 1, 9, 9), Scripted("inlet send s3", 1, 1, 1), Scripted("s5cmd", 1, 2, 2)], 0, 0, 1),
    ):
        group, failures = Group(None, Load("2x16KiB"), "http", "size", given), []
        group.one_round = Scripted.next_round
        with contextlib.redirect_stdout(io.StringIO()):
            found = group.measure(clients, None, failures)
            ended = outcome.conclude(list(targets.target_rows(found, targets.FACTS)), failures)
        if (len(failures), len(found["left_out"]), ended) != (failed, left_out, code):
            sys.exit(f"a round's failures are told wrongly: {failures} {found['left_out']} {ended}")


def self_test():
    test_failures()
    for part in (loads, outcome, targets, chart):
        part.self_test()
    given = options().parse_args([])
    if len(plan(given)) != len(SHORT) or len(plan(options().parse_args(["--all"]))) != 40:
        sys.exit("the plan is wrong")
    if plan(options().parse_args(["--loads", "3x8MiB", "--verify", "md5,size"])) != [
            ("3x8MiB", "http", "md5"), ("3x8MiB", "http", "size")]:
        sys.exit("a chosen plan is wrong")
    print("ok    throughput")


def options():
    def some_of(allowed):
        def read(text):
            words = text.split(",")
            if allowed and (unknown := [word for word in words if word not in allowed]):
                raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(allowed)}")
            return words
        return read

    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--loads", type=some_of(None), help=f"such as 5000x16KiB,1x2GiB; else {','.join(LOADS)}")
    found.add_argument("--schemes", type=some_of(SCHEMES), help="http,https")
    found.add_argument("--verify", type=some_of(CHECKS), help=",".join(CHECKS))
    found.add_argument("--peers", type=some_of(sorted(set().union(*map(names_of, PEERS)))), help="without it all that are there")
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--other-rounds", type=int, default=1, help="of clients that no target names")
    found.add_argument("--delay", type=int, default=0, metavar="MS", help="holds back every answer")
    found.add_argument("--connections", type=int, metavar="N", help="of inlet and s5cmd, for small files")
    found.add_argument("--all", action="store_true", help="every load, scheme, check and client: hours")
    outcome.add_option(found)
    found.add_argument("--save", action="store_true", help=f"into {results.KEPT}, in the place of what was measured before")
    found.add_argument("--self-test", action="store_true")
    return found


def main():
    given = options().parse_args()
    if given.self_test:
        return self_test()
    groups, peers, failures = measure_all(given)
    run = {"machine": results.machine(), "peers": peers, "groups": groups}
    rows = results.targets_of(run)
    if given.save:
        results.save(run)
    return outcome.conclude(rows, failures, given.report)


if __name__ == "__main__":
    sys.exit(main())
