"""Runs the fuzzer's readers, each for SECONDS and a few at a time, and tells how often each ran and what broke it.

A reader begins with the corpus that the tests read, with further files of the project, and with what earlier runs found, which
stays in .build-fuzz. What breaks one is kept in Tests/FuzzTests/Corpora, where the tests read it from then on.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
from pathlib import Path

from agent import HERE, binary
from report import Failed, Given, Row, none, table

CORPORA = Path("Tests/FuzzTests/Corpora")
FOUND = Path(".build-fuzz/corpora")
LEAKS = Path("packaging/checks/sanitize/leak.txt")
# Beyond these one input has hung, or took memory that no input may take.
TIMEOUT_S, MEMORY_MIB = 20, 2048
MORE = {"settings": ["config", "config/examples", "Tests/InletConfigTests/Fixtures/good", "Tests/InletConfigTests/Fixtures/bad"]}

OPTIONS = {
    "seconds": 60,
    "readers": [],
    "--jobs": os.cpu_count(),
}


def readers() -> dict[str, int]:
    """Names, and the longest input worth trying."""
    said = subprocess.run([binary()], capture_output=True, text=True, check=True).stdout
    return {name: int(longest) for name, longest in map(str.split, said.splitlines())}


def words(reader: str) -> list[str]:
    """Those that no mutation finds soon: of fuzz_words.txt, or of the file that names every key of the configuration."""
    if reader in ("settings", "sidecar"):
        return sorted(set(re.findall(r"[a-z_0-9]+: ?|\$\{env:KEY\}|&a|\*a|<<:|!!binary", Path("config/inlet.yaml").read_text())))
    lines = map(str.split, (HERE / "fuzz_words.txt").read_text().splitlines())
    return [word for name, *found in lines if name == reader for word in found]


def fuzz(reader: str, longest: int, seconds: int) -> tuple[str, bool]:
    """- Returns: libFuzzer's words, and whether it ended well."""
    found, dictionary = FOUND / reader, FOUND / f"{reader}.dict"
    found.mkdir(parents=True, exist_ok=True)
    # As a dictionary has it (llvm.org/docs/LibFuzzer.html): what needs a backslash has one already. An empty one is an error.
    dictionary.write_text("".join(f'"{word}"\n' for word in words(reader)))
    options = [f"-dict={dictionary}"] if dictionary.stat().st_size else []
    # Swift's own report of a crash would come before libFuzzer's, which keeps the input.
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no", "LSAN_OPTIONS": f"suppressions={LEAKS}:print_suppressions=0"}
    ended = subprocess.run(
        [binary(), reader, f"-max_total_time={seconds}", f"-max_len={longest}", f"-timeout={TIMEOUT_S}",
         f"-rss_limit_mb={MEMORY_MIB}", f"-artifact_prefix={found}-", "-print_final_stats=1", *options, found, CORPORA / reader,
         *MORE.get(reader, [])], capture_output=True, text=True, errors="replace", env=environment)
    return ended.stderr, ended.returncode == 0


def keep(reader: str, report: str) -> str:
    """Puts the input that broke the reader where the tests read it. - Returns: its path, or what is known instead."""
    if not (written := re.search(r"Test unit written to (\S+)", report)):
        return (report.strip().splitlines() or ["no word"])[-1]
    source = Path(written[1])
    return str(shutil.move(source, CORPORA / reader / source.name.removeprefix(f"{reader}-")))


def figures(report: str) -> tuple[int, ...]:
    """Executions, seconds they took, parts of the program reached, and peak memory, from libFuzzer's last words."""
    patterns = (r"number_of_executed_units:\s+(\d+)", r" runs in (\d+) second", r" cov: (\d+)", r"peak_rss_mb:\s+(\d+)")
    return tuple(int((re.findall(pattern, report) or [0])[-1]) for pattern in patterns)


def reason(report: str) -> str:
    """The sentence that a broken promise ended with, or the first words of the sanitizer."""
    found = re.search(r"Fatal error: (.*)|(ERROR: .*)", report)
    return found[0][:300] if found else ""


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    known, lines, broken, total = readers(), [], [], 0
    if unknown := set(given.readers) - set(known):
        raise Failed(f"no reader is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = given.readers or list(known)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for name, (report, is_well) in zip(chosen, pool.map(lambda name: fuzz(name, known[name], given.seconds), chosen)):
            count, took, reached, memory = figures(report)
            total += count
            lines.append([name, f"{count:,}", f"{count // max(took, 1):,}", reached, memory, "" if is_well else "BROKEN"])
            broken += [] if is_well else [f"  {name}: {reason(report)}\n    {keep(name, report)}"]
    table(f"fuzzed for {given.seconds} s each", ["", "executions", "a second", "edges", "MiB", ""], lines)
    print("\n".join(broken))
    return f"{total:,} executions", [none(f"of {len(chosen)} readers broken", len(broken))]
