"""The figures of watch.py: tables part by part, and JSON."""

import json
import os
import platform
from pathlib import Path

from measure import table, verdict


class Results:
    """Rows of figures, printed as a table part by part, and kept for --json."""

    def __init__(self, peers):
        self.names = [peer.name for peer in peers]
        self.rows = []

    def add(self, part, what, value, target="", reached=None, peers=None, form="{:,.0f}"):
        self.rows.append({"part": part, "what": what, "inlet": value, "target": target, "reached": reached,
                          "peers": peers or {}, "form": form})

    def bounded(self, part, most):
        """What may not grow with files or folders: far below the 1,024 descriptors that a process gets by default."""
        seen = most.descriptors or None
        self.add(part, "descriptors at most", seen, "<= 128", seen and seen <= 128)
        self.add(part, "threads at most", most.threads, "<= 64", most.threads <= 64)
        log = most.log / (1 << 20)
        self.add(part, "the journal's log (WAL) at most, MiB", log, "<= 64", log <= 64, form="{:.1f}")

    def show(self, part):
        def cell(value, form):
            if value is None:
                return ""
            return " ".join(form.format(one) for one in value) if isinstance(value, list) else form.format(value)

        rows = [row for row in self.rows if row["part"] == part]
        if rows:
            table(part, ["", "inlet", "target", "", *self.names], [
                [row["what"], cell(row["inlet"], row["form"]), row["target"],
                 "" if row["reached"] is None else verdict(row["reached"]),
                 *(cell(row["peers"].get(name), row["form"]) for name in self.names)] for row in rows])

    def write(self, path, options):
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "machine": platform.machine()}
        rows = [{key: value for key, value in row.items() if key != "form"} for row in self.rows]
        text = json.dumps({"options": vars(options), "machine": machine, "results": rows}, indent=1)
        if path == "-":
            print(text)
        else:
            Path(path).write_text(text + "\n")
