"""A folder that all stations of a fleet watch as one place: its files, and what must have become of them."""

import hashlib
import os
import random
from pathlib import Path
from typing import Any

from agent import route
from judge import Source, source_problem
from scenarios.crash import etags


class Share:
    """Its files come to a folder for each end of a source."""

    NAME = "media"
    POLICIES = ("delete", "archive", "keep")

    def __init__(self, folder: Path) -> None:
        self.root, self._staging = folder / "share", folder / "share-staging"
        self._staging.mkdir()
        for policy in self.POLICIES:
            (self.root / policy).mkdir(parents=True)
        self.sources: list[Source] = []
        # Other destinations, which get the files of folders of their names, and what their routes say besides.
        self.kinds: dict[str, dict[str, Any]] = {}

    def routes(self, to: str) -> list[dict[str, Any]]:
        """Keys are names, as those of the stations' own files."""
        return [*(route(f"share-{kind}", kind, path=f"delete/{kind}/**", on_success="delete", **more)
                  for kind, more in self.kinds.items()),
                *(route(f"share-{policy}", to, path=f"{policy}/**", on_success=policy) for policy in self.POLICIES)]

    def put(self, policy: str, name: str, size: int, draw: random.Random) -> Source:
        content = draw.randbytes(size)
        staged, path = self._staging / f"{policy}-{name}".replace("/", "-"), self.root / policy / name
        staged.write_bytes(content)
        path.parent.mkdir(exist_ok=True)
        digest = hashlib.sha256(content).hexdigest()
        source = Source(f"{policy}/{name}", self.NAME, policy, size, digest, etags(content))
        self.sources.append(source)
        os.rename(staged, path)
        return source

    def problems(self) -> list[str]:
        """Sources that are not where their routes say, and private names that were left."""
        found = [(source.name, source_problem(self.root, source)) for source in self.sources]
        found += [(str(path), "a private name that was left") for path in self.root.rglob(".inlet-*")]
        return [f"{self.NAME}/{name}: {problem}" for name, problem in found if problem]
