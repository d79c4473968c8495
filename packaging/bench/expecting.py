"""What bench_test.py and throughput_test.py say of what they find."""

import argparse
from typing import Any

from report import Failed


def expect(what: str, got: Any, wanted: Any) -> None:
    if got != wanted:
        raise SystemExit(f"{what}: {got}, not {wanted}")


def failure(call: Any) -> str:
    try:
        call()
        return "none"
    except (Failed, argparse.ArgumentTypeError) as error:
        return str(error)
