"""What bandwidth.py measures with: an agent with two destinations, a sink for each, and the rates at which these take bytes."""

import calendar
import contextlib
import os
import statistics
import time

from measure import Inlet, inlet
from s3_sink import Sink

DESTINATIONS = ("first", "second")
# Of both destinations together. Bodies below 4 MiB have a connection each; of larger ones a destination takes only as many at
# once as its line is found to carry.
CONNECTIONS = 64
# What each destination has beside its part of them: an eighth is kept free for bodies of at most 256 KiB.
KEPT_FREE = 8
BODY = 3 << 20
UNITS = {"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30}


def bytes_a_second(rate):
    unit = next(unit for unit in UNITS if rate.endswith(unit))
    return float(rate.removesuffix(unit)) * UNITS[unit]


def files_for(rates, seconds):
    """How many files each destination needs so that none runs dry, if it alone had all of what these rates let through."""
    through = sum(map(bytes_a_second, rates)) * (seconds + 4)
    return int(1.3 * through / BODY) + 2 * CONNECTIONS


def next_edge(now, lead):
    """The first full minute that is at least `lead` seconds away, and its name on a clock in UTC."""
    edge = (int(now + lead) // 60 + 1) * 60
    return edge, time.strftime("%H:%M", time.gmtime(edge))


class Measured:
    """What the sinks took over some seconds: bytes/s of each, and how many connections were in the middle of a body."""

    def __init__(self, rates, sending):
        self.rates, self.sending = rates, sending

    @property
    def all(self):
        return sum(self.rates.values())

    @property
    def connections(self):
        return statistics.median(self.sending)


class Lab(contextlib.ExitStack):
    """A running agent, the sinks of its destinations, and files for them. `limits` and `own` are lines of configuration, `own`
    by destination."""

    def __init__(self, folder, program, *, names=DESTINATIONS, workers=4, limits="", own=None):
        super().__init__()
        self.folder = folder
        (folder / "drop").mkdir(parents=True)
        # Sink looks for its program in the folder that it is given.
        os.link(program, folder / program.name)
        self.sinks = {name: self.enter_context(Sink(folder)) for name in names}
        self.config = self._configure(names, workers, limits, own or {})
        self.agent = self.enter_context(Inlet(self.config, folder / "inlet.log"))
        self.agent.wait_ready()

    def _configure(self, names, workers, limits, own):
        lines = [f"state_dir: {self.folder}/state", f"workers: {workers}", *([f"limits: {{ {limits} }}"] if limits else []),
                 "destinations:"]
        for name in names:
            more = f", {own[name]}" if name in own else ""
            lines.append(f'  {name}: {{ type: s3, endpoint: "{self.sinks[name].url}", bucket: bench, access_key: bench, '
                         f"secret_key: bench, verify: size, connections: {CONNECTIONS // len(names) + KEPT_FREE}{more} }}")
        lines += ["watch:", f"  - {{ path: {self.folder}/drop, settle: 0s }}", "routes:"]
        for name in names:
            (self.folder / "drop" / name).mkdir()
            lines.append(f'  - {{ name: {name}, match: {{ path: "{name}/**" }}, to: [{name}], key: "{{name}}" }}')
        path = self.folder / "inlet.yaml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path

    def limit(self, *words):
        inlet("limit", *words, config=self.config)

    def drop(self, to, name, size=BODY, count=1):
        """Files that are whole when they appear, all at once; sparse, so that no disk is measured. - Returns: when."""
        staged = self.folder / name
        staged.mkdir()
        for number in range(count):
            with open(staged / f"{name}-{number:05}.bin", "wb") as file:
                file.truncate(size)
        now = time.time()
        os.rename(staged, self.folder / "drop" / to / name)
        return now

    def stats(self, key):
        return {name: sink.stats()[key] for name, sink in self.sinks.items()}

    def wait_sending(self, count, seconds=30):
        """Until so many connections are in the middle of a body, or until `seconds` have passed."""
        end = time.monotonic() + seconds
        while sum(self.stats("sending").values()) < count and time.monotonic() < end:
            time.sleep(0.1)

    def measure(self, seconds):
        before = {name: (sink.stats()["bytes"], time.monotonic()) for name, sink in self.sinks.items()}
        end, sending = time.monotonic() + seconds, []
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            sending.append(sum(self.stats("sending").values()))
        rates = {}
        for name, sink in self.sinks.items():
            bytes_before, start = before[name]
            now, taken = time.monotonic(), sink.stats()["bytes"]
            rates[name] = (taken - bytes_before) / (now - start)
        return Measured(rates, sending)

    def arrived(self, to, name, seconds=120):
        """When the sink has had all of this object, by the clock of the wall."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if name in self.sinks[to].objects():
                return time.time()
            time.sleep(0.004)
        raise SystemExit(f"{name} did not arrive within {seconds} s:\n{self.agent.tail()}")

    def ended_transfers(self):
        """Bodies that a sink saw break off, and deliveries that inlet had to begin again."""
        return sum(self.stats("cut").values()) + self.agent.count("job.retry")


def self_test():
    for rate, value in (("100KiB/s", 102_400), ("1.5MiB/s", 1_572_864), ("1GiB/s", 1 << 30)):
        if bytes_a_second(rate) != value:
            raise SystemExit(f"{rate} is not {bytes_a_second(rate)}")
    noon = calendar.timegm((2026, 1, 1, 12, 0, 10))
    for now, lead, wanted in ((noon, 20, (noon + 50, "12:01")), (noon, 50, (noon + 110, "12:02")),
                              (noon + 12 * 3600 - 50, 15, (noon + 12 * 3600 - 10, "00:00"))):
        if next_edge(now, lead) != wanted:
            raise SystemExit(f"next_edge({now}, {lead}) is {next_edge(now, lead)}, not {wanted}")
    if files_for(["30MiB/s"], 6) * BODY < 390 << 20:
        raise SystemExit("files_for lets a destination run dry")
    print("ok    bandwidth_lab")
