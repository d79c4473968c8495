"""Runs one scenario: bench.py SCENARIO [OPTION…]. bench.sh builds what it needs and calls this."""

import argparse
import importlib
import os
import sys

import agent
from report import Failed, conclude


def main() -> int:
    name, *words = sys.argv[1:]
    scenario = importlib.import_module(f"scenarios.{name}")
    options = argparse.ArgumentParser(f"{name}.sh", description=scenario.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    scenario.add_options(options)
    options.add_argument("--report", action="store_true", help="exit 0 also when a target is missed or not measured")
    given = options.parse_args(words)
    if "seed" in given:
        print(f"seed {given.seed}", flush=True)
    with agent.workspace() as folder:
        try:
            code = conclude(*scenario.run(folder, given), given.report)
        except Failed as failure:
            print(failure, file=sys.stderr)
            code = 1
        # What a run with a seed leaves is looked at when something is wrong with it.
        if code == 1 and "seed" in given:
            os.environ["INLET_KEEP"] = "1"
    return code


if __name__ == "__main__":
    sys.exit(main())
