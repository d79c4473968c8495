"""Compiles every mutation of mutations.toml into one build, and runs the killer of each with it switched on. --check only sees
that each has its one place in the sources and its one test.

What is on is the target of a symlink beside the binaries: that is seen by tests and by the programs they start, and may be
read behind every confinement.
"""

import json
import os
import queue
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import checklist

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".build" / "mutations"
TREE, BUILD = PLACE / "tree", PLACE / "build"
# Of one test, in seconds: less than what `eventually` waits. Who hangs is no proof: nobody waits for that.
BOUND = 100
LEAST, LEAST_OF_MODULE = 60, 3

SWITCH = """import Glibc

/// Which mutation of the tree is on.
package enum Mutation {
    private static let on: String = {
        let program = target("/proc/self/exe")
        return target(program.prefix(upTo: program.lastIndex(of: "/") ?? program.startIndex) + "/mutation")
    }()

    private static func target(_ link: String) -> String {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink(link, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package static func isOn(_ name: String) -> Bool { name == on }

    /// The script of the fleet's schema with the mutation that is on.
    package static func schema(_ text: String) -> String {
        switch on {
%s        default: text
        }
    }
}
"""
# SQL is compiled in as bytes: it is changed where Swift reads it.
SCHEMA, LOADER, LOADED = "Sources/CFleetSchema", "Sources/InletFleet/Schema/FleetSchema.swift", "String(cString: fleet_schema_sql())"


def faults(mutations):
    """What is wrong with the table."""
    modules = [mutation["file"].split("/")[1] for mutation in mutations]
    for module in sorted({path.name for path in (ROOT / "Sources").iterdir() if any(path.rglob("*.swift"))}):
        if modules.count(module) < LEAST_OF_MODULE:
            yield f"{module} has {modules.count(module)}, and not {LEAST_OF_MODULE}"
    if len(mutations) < LEAST:
        yield f"there are {len(mutations)}, and not {LEAST}"
    ids = [mutation["id"] for mutation in mutations]
    yield from (f"{name} is the id of several" for name in sorted(set(ids)) if ids.count(name) > 1)
    known = checklist.declared()
    script = "".join(path.read_text() for path in sorted((ROOT / SCHEMA).rglob("*.sql")))
    for mutation in mutations:
        texts = [(ROOT / mutation["file"]).read_text()] + ([script] if mutation["kind"] == "sql" else [])
        if any(text.count(mutation["old"]) != 1 for text in texts):
            yield f"{mutation['id']}: its `old` does not stand once in {mutation['file']}"
        if (mutation["kind"] == "sql") != mutation["file"].endswith(".sql"):
            yield f"{mutation['id']}: {mutation['file']} is not what the kind {mutation['kind']} is for"
        if known[mutation["killer"].replace("`", "")] != 1:
            yield f"{mutation['id']}: {mutation['killer']} is declared {known[mutation['killer'].replace('`', '')]} times"


def mutated(text, mutation):
    """The text with both: what stands there, and what stands there while the mutation is on."""
    old, new, on = mutation["old"], mutation["new"], f'Mutation.isOn("{mutation["id"]}")'
    if mutation["kind"] == "expression":
        both = f"({on} ? ({new}) : ({old}))"
    else:
        both = f"if {on} {{\n{new}\n}} else {{\n{old}\n}}" if new else f"if !{on} {{\n{old}\n}}"
    return text.replace(old, both)


def switch(mutations):
    """The text of the switch, with the mutations of SQL."""
    cases = [f'        case "{mutation["id"]}":\n            text.replacing(\n{literal(mutation["old"])},\n'
             f'                with:\n{literal(mutation["new"])})\n' for mutation in mutations if mutation["kind"] == "sql"]
    return SWITCH % "".join(cases)


def literal(text):
    """Of Swift, as it stands here."""
    return f'##"""\n{text}\n"""##'


def see_core(path, text):
    """The switch is InletCore's; a file that does not see that module is made to."""
    if path.startswith("Sources/InletCore/") or re.search(r"^(\w+ )?import InletCore$", text, re.M):
        return text
    return "import InletCore\n" + text


def make_tree(mutations):
    """A copy of what git knows of, with all mutations. What is the same stays untouched, so that it is not built again."""
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    wanted = {name: (ROOT / name) for name in listed if name and (ROOT / name).is_file()}
    texts = {"Sources/InletCore/Mutation.swift": switch(mutations),
             LOADER: wanted[LOADER].read_text().replace(LOADED, f"Mutation.schema({LOADED})")}
    for mutation in mutations:
        if mutation["kind"] == "sql":
            continue
        name = mutation["file"]
        texts[name] = mutated(texts.get(name) or wanted[name].read_text(), mutation)
    texts = {name: see_core(name, text) for name, text in texts.items()}
    for old in [path for path in TREE.rglob("*") if path.is_file()]:
        if str(old.relative_to(TREE)) not in wanted.keys() | texts.keys():
            old.unlink()
    for name in wanted.keys() | texts.keys():
        content = texts[name].encode() if name in texts else wanted[name].read_bytes()
        place = TREE / name
        if not place.is_file() or place.read_bytes() != content:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod((wanted.get(name) or place).stat().st_mode)


def pattern(killer):
    """`Module.Suite/name` as the filter of a run."""
    module, test = killer.split(".", 1)
    suite, name = test.split("/", 1)
    return "^" + re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", f"{module}.{suite.replace('.', '/')}/{name}") + r"\("


def run(folder, killers, on=None):
    """How it ended, and the kinds of what happened to the tests."""
    (folder / "mutation").unlink(missing_ok=True)
    if on:
        (folder / "mutation").symlink_to(on)
    stream = folder / "events.jsonl"
    stream.unlink(missing_ok=True)
    command = [folder / "InletPackageTests.xctest", "--testing-library", "swift-testing", "--event-stream-output-path", stream]
    for killer in killers:
        command += ["--filter", pattern(killer)]
    try:
        ended = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND * len(killers),
                               env={**os.environ, "SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH": "4"}).returncode
    except subprocess.TimeoutExpired:
        return "hangs", []
    lines = stream.read_text().split("\n") if stream.exists() else []
    payloads = [json.loads(line)["payload"] for line in lines if line.endswith("}")]
    # A wait that is over is no failed expectation.
    return ended, [(payload["kind"], payload.get("testID", "")) for payload in payloads if not any(
        "not within" in message["text"] for message in payload.get("messages", []))]


def verdict(ended, happened):
    """nil where the killer has run to its end and an expectation of it has failed."""
    kinds = {kind for kind, test in happened if "`" in test}
    if ended == "hangs":
        return "its killer hangs"
    if "testStarted" not in kinds:
        return "its killer did not run"
    if "runEnded" not in {kind for kind, _ in happened}:
        return "its killer ends the process"
    return None if "issueRecorded" in kinds else "it survives"


def folders(count):
    """Each with the binaries and a switch of its own."""
    built = BUILD / "debug"
    for number in range(count):
        folder = PLACE / f"lane{number}"
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir(parents=True)
        for path in [built / "InletPackageTests.xctest", built / "inlet", *built.glob("*.resources")]:
            subprocess.run(["cp", "-rlL", path, folder], check=True)
        yield folder


def main(ids):
    mutations = tomllib.loads((ROOT / "packaging" / "mutations.toml").read_text())["mutation"]
    if wrong := list(faults(mutations)):
        sys.exit("\n".join(wrong))
    if ids == ["--check"]:
        return 0
    if strangers := set(ids) - {mutation["id"] for mutation in mutations}:
        sys.exit(f"no such mutation: {', '.join(sorted(strangers))}")
    chosen = [mutation for mutation in mutations if not ids or mutation["id"] in ids]
    make_tree(mutations)
    # As packaging/lib.sh builds for the tests.
    flags = ["--scratch-path", BUILD, "--explicit-target-dependency-import-check", "error", "-Xswiftc", "-O"]
    subprocess.run(["swift", "build", "--build-tests", *flags], cwd=TREE, check=True, stdout=sys.stderr)
    lanes, free = list(folders(os.cpu_count() or 1)), queue.SimpleQueue()
    ended, happened = run(lanes[0], {mutation["killer"] for mutation in chosen})
    broken = {test for kind, test in happened if kind == "issueRecorded"}
    if ended != 0 or broken:
        sys.exit(f"without any mutation the killers end with {ended}: {sorted(broken)}")
    for folder in lanes:
        free.put(folder)
    failed = 0

    def judged(mutation):
        folder = free.get()
        try:
            return mutation, verdict(*run(folder, [mutation["killer"]], mutation["id"]))
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(lanes)) as pool:
        for mutation, found in pool.map(judged, chosen):
            failed += found is not None
            print(f"FAIL  {mutation['id']}: {found}" if found else f"ok    {mutation['id']}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
