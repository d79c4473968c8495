"""What a built inlet prints about itself: the source of man pages and reference pages."""

import datetime
import functools
import json
import os
import re
import subprocess


class Program:
    def __init__(self, binary):
        self.binary = binary

    def printed(self, *arguments):
        return subprocess.run([self.binary, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

    @functools.cached_property
    def release(self):
        return self.printed("--version").strip()

    @property
    def version(self):
        """`inlet 0.9.0`."""
        return " ".join(self.release.split()[:2])

    @property
    def day(self):
        """Of SOURCE_DATE_EPOCH, for pages that come out the same; else of the build's commit, where it knows that."""
        if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
            return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).date().isoformat()
        found = re.search(r"\d{4}-\d\d-\d\d", self.release)
        return found[0] if found else datetime.date.today().isoformat()

    @functools.cached_property
    def root(self):
        """The command line, as swift-argument-parser dumps it."""
        return json.loads(self.printed("--experimental-dump-help"))["command"]

    @functools.cached_property
    def schema(self):
        """Of the configuration."""
        return json.loads(self.printed("config", "schema"))

    @functools.cached_property
    def reference(self):
        return json.loads(self.printed("reference"))
