"""Files to send: random ones, so that nothing on the way can shorten them, and sparse ones, for which no disk is measured."""

import hashlib
import os
import random
from pathlib import Path

# Small, because what a child needed at most cannot be told from what its parent did.
BLOCK = 4 << 20


def write_random(path: Path, size: int, is_hashed: bool = False) -> str:
    """- Returns: the MD5 of what was written, or "-". Written just now, it is in the page cache."""
    total, block = hashlib.md5(), os.urandom(min(size, BLOCK))
    with open(path, "wb") as file:
        for at in range(0, size, BLOCK):
            piece = block[:size - at]
            file.write(piece)
            if is_hashed:
                total.update(piece)
    return total.hexdigest() if is_hashed else "-"


def write_sparse(path: Path, size: int) -> Path:
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def drop_together(folder: Path, root: Path, prefix: str, count: int, size: int, seed: int = 0) -> dict[str, str]:
    """Files that are complete when they appear in `root`, one right after the other. - Returns: {name: its MD5}."""
    source, sums = random.Random(f"{prefix} {seed}"), {}
    staging = folder / "staging"
    staging.mkdir(exist_ok=True)
    for number in range(count):
        content = source.randbytes(min(size, 4096)) * (size // min(size, 4096))
        sums[f"{prefix}-{number}"] = hashlib.md5(content).hexdigest()
        (staging / f"{prefix}-{number}").write_bytes(content)
    for name in sums:
        (staging / name).rename(root / name)
    return sums
