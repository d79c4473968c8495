"""Runs one scenario: bench.py SCENARIO [OPTION…]. bench.sh builds what it needs and calls this."""

import argparse
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from report import MISSED, Failed, conclude


def some_of(allowed: list[str]) -> Callable[[str], list[str]]:
    """Words with commas between."""
    def read(text: str) -> list[str]:
        words = text.split(",")
        if allowed and (unknown := set(words) - set(allowed)):
            raise argparse.ArgumentTypeError(f"{min(unknown)} is none of {', '.join(allowed)}")
        return words
    return read


def parse(scenario: ModuleType, words: list[str]) -> argparse.Namespace:
    """By the scenario's OPTIONS: {name: default, or (default, help)}. The default False is a flag, a list are choices of which
    some can be given, with commas between (any, if it is empty), and a type is that of an option without a default."""
    parser = argparse.ArgumentParser(f"{scenario.__name__.rpartition('.')[2]}.sh", description=scenario.__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {**scenario.OPTIONS, "--report": (False, "exit 0 also when a target is missed or not measured")}.items():
        default, words_of_help = value if isinstance(value, tuple) else (value, None)
        is_option = name.startswith("--")
        if default is False:
            more = {"action": "store_true"}
        elif isinstance(default, list):
            more = {"type": some_of(default), "metavar": ",".join(default) or None} if is_option else {"nargs": "*"}
        elif callable(default):
            more = {"type": default}
        else:
            more = {"type": type(default), "default": default} | ({} if is_option else {"nargs": "?"})
        parser.add_argument(name, help=words_of_help, **more)
    return parser.parse_args(words)


def main() -> int:
    name, *words = sys.argv[1:]
    scenario = importlib.import_module(f"scenarios.{name}")
    given = parse(scenario, words)
    if "seed" in given:
        print(f"seed {given.seed}", flush=True)
    # Below $TMPDIR. What a run with a seed leaves is kept, however it ends, to be looked at, unless it was good.
    folder, code = Path(tempfile.mkdtemp(prefix="inlet-bench-")), MISSED
    try:
        code = conclude(*scenario.run(folder, given), given.report)
    except Failed as failure:
        print(failure, file=sys.stderr)
    finally:
        if os.environ.get("INLET_KEEP") or "seed" in given and code == MISSED:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
