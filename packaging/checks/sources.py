"""The house rules that no compiler checks. One line a check, then what broke it; exits 1 when anything did.

Each check is a function that yields its findings; CHECKS at the end names them all. A rule's exception is written
where it is needed (`// length: reason`, a comment at the unsafe spot), never here.
"""

import re
import subprocess
import sys
from pathlib import Path

from links import broken_links
from names import unnamed
from swift_text import closing, debug_lines, functions, without_comments_and_strings

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 480
FUNCTION_LINES = 40

# One dependency, one door: who may import what is not ours. Which of our modules a module may import says Package.swift, and the build
# refuses others (lib.sh, build_tests).
DOORS = {
    "Glibc": {"InletLinux"},
    "CBuild": {"inlet"},
    "CHost": {"InletLinux"},
    "CLinux": {"InletLinux"},
    "CCurl": {"InletTransfer"},
    "CFleetSchema": {"InletFleet"},
    "CHash": {"InletCore", "InletTransfer"},
    "CISAL": {"InletTransfer"},
    "CPostgres": {"InletFleet"},
    "CSQLite": {"InletJournal"},
    "CXXHash": {"InletTransfer"},
    "CYAML": {"InletConfig"},
    "InletWeb": {"InletDashboard"},
    "GRDB": {"InletJournal"},
    "GRDBSQLite": {"InletJournal"},
    "ArgumentParser": {"inlet"},
    "Hummingbird": {"InletDashboard", "InletSandbox"},
    "HummingbirdCore": {"InletDashboard", "InletSandbox"},
    "HTTPTypes": {"InletDashboard", "InletSandbox"},
    "NIOCore": {"InletDashboard", "InletSandbox"},
    "NIOHTTP1": {"InletDashboard"},
    "NIOPosix": {"InletDashboard", "InletSandbox"},
    # One door: `HashFunction` and `MessageCode`; what is sealed of the journal besides.
    "CCrypto": {"InletCore", "InletPipelines"},
    "HeapModule": {"InletCore"},
    # Lower modules return, never log; the two servers hand a logger to Hummingbird.
    "Logging": {"InletAgent", "InletDashboard", "InletSandbox"},
    "ServiceLifecycle": {"InletAgent", "InletDashboard", "InletFleet", "InletSandbox", "inlet"},
    "UnixSignals": {"inlet"},
}
OPEN = {"SystemPackage", "Synchronization", "Foundation", "FoundationEssentials"}
FOUNDATION_IN_CORE = re.compile(r"Sources/InletCore/(Routing/KeyTemplate[^/]*|Text/JSON|Text/Redactor)\.swift")

IMPORT = re.compile(
    r"^[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+"
    r"(?:(?:struct|class|enum|protocol|typealias|func|let|var|actor)\s+)?(\w+)", re.MULTILINE)

# What is particular to a kind of destination stands in `InletPipelines/KIND/` and in `inlet/Commands/KIND/`; outside, only the
# list of kinds, the list of commands, the sandbox and the demo name it. `r2`, `s3` and `folder` are words and protocols, too.
KINDS = {
    "Folder": re.compile(r'\bFolder(?:Kind|Settings|Pipeline)\b|type == "folder"'),
    "S3": re.compile(r'\bS3[A-Z]|"s3"'),
    "R2": re.compile(r'(?i:spiral)|\bR2[A-Z]|"r2"'),
    "GigHive": re.compile(r"(?i)gighive"),
    "VOPI": re.compile(r"(?i)vopi"),
    "Roboscope": re.compile(r"(?i)roboscope"),
}
ALL_KINDS = ("Sources/InletPipelines/DestinationKind.swift", "Sources/InletSandbox/", "Sources/inlet/Demo/")
KIND_COMMAND = re.compile(r"^ *\w+\.self,$")

# In code (comments and strings taken out) these end a promise: structured concurrency, no crash, no blocked thread.
FORBIDDEN = re.compile(r"(?<!\.)\bTask(?:\.immediate)?\s*(?:<[^<>{}]*>)?\s*(?:\([^(){}]*\))?\s*\{|\bTask\.detached\b|\btry!"
                       r"|\bfatalError\s*\(|\bThread\.sleep\b|\busleep\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME)\b")
SWALLOWED = re.compile(r"\btry\?|(?<!func )\bbestEffort\(")
CATCH_ALL = re.compile(r"\bcatch\s*\{")
NEEDS_REASON = re.compile(r"@unchecked\s+Sendable|nonisolated\(unsafe\)")
# The library makes a missing one from the type's name, which costs each start some hundred questions to the runtime.
UNNAMED_COMMAND = re.compile(r"\bCommandConfiguration\((?!\s*commandName:)")
SKIPPED_TEST = re.compile(r"\.disabled\s*\(|\bwithKnownIssue\b")
# What may only be in debug builds: what tests name in the environment, and what ends or hurries the process for them.
DEBUG_ONLY = re.compile(r"\bINLET_(?:FAILPOINT|PROBE_PACE|FAULTS(?:_LOG)?)\b|\bArmed\b|\bkill\s*\(\s*getpid\b")
# In the page's files: a long line, a tab, a space at a line's end, a second empty line, another end than one line break. In its
# scripts besides: what is not moved in by steps of 4 (further lines of a comment begin with " *"), and what a linter says first;
# `== null` also holds for undefined, and is meant so. What may stand in the page at all is WebFilesTests' to say.
UNFORMATTED = re.compile(r"^.{121}|\t| $|\n{3}|\n\n\Z|[^\n]\Z", re.MULTILINE)
LOOSE = re.compile(r"^(?:    )* {1,3}(?![ *])|\bvar |[^=!]==(?!=)(?! null\b)|!=(?!=)(?! null\b)", re.MULTILINE)
# Places of one person's machine; written so that this line does not match itself.
LOCAL_PATH = re.compile(r"(?<![\w.~$}-])/(?:[w]ork|[h]ome)/[\w.-]")


def tracked():
    """What a clone would hold: tracked files and new ones that are not ignored."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True)
    names = map(Path, listed.stdout.decode(errors="surrogateescape").rstrip("\0").split("\0"))
    return sorted(name for name in names if (ROOT / name).is_file())


FILES = tracked()
TEXT = {name: (ROOT / name).read_text(errors="replace") for name in FILES}
SOURCES = [name for name in FILES if name.suffix == ".swift" and name.parts[0] == "Sources"]
OURS = {name.parts[1] for name in SOURCES}
TESTS = [name for name in FILES if name.suffix == ".swift" and name.parts[0] == "Tests"]
WEB = [name for name in FILES if name.parent == Path("Sources/InletWeb/page")]
PAGES = {name: text for name, text in TEXT.items() if name.suffix == ".md"}
CODE = {name: without_comments_and_strings(TEXT[name]) for name in SOURCES + TESTS}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def imports(name):
    for match in IMPORT.finditer(CODE[name]):
        yield line_of(CODE[name], match.start(1)), match[1]


def one_door():
    for name in SOURCES:
        module = name.parts[1]
        for line, imported in imports(name):
            if imported in OURS:
                continue
            if imported.startswith("Foundation") and module == "InletCore" and not FOUNDATION_IN_CORE.match(str(name)):
                yield f"{name}:{line}: in InletCore only Routing/KeyTemplate*, Text/JSON.swift and Text/Redactor.swift may import {imported}"
            elif imported not in OPEN and imported not in DOORS:
                yield f"{name}:{line}: {imported} has no door in packaging/checks/sources.py"
            elif imported in DOORS and module not in DOORS[imported]:
                yield f"{name}:{line}: only {', '.join(sorted(DOORS[imported]))} may import {imported}"


def kinds_at_home():
    for name in SOURCES:
        if str(name).startswith(ALL_KINDS):
            continue
        for kind, word in KINDS.items():
            if str(name).startswith((f"Sources/InletPipelines/{kind}/", f"Sources/inlet/Commands/{kind}/")):
                continue
            for match in word.finditer(TEXT[name]):
                line = line_of(TEXT[name], match.start())
                is_command = str(name) == "Sources/inlet/Inlet.swift" and KIND_COMMAND.match(TEXT[name].splitlines()[line - 1])
                if not is_command:
                    yield f"{name}:{line}: '{match[0]}' outside of the folder of its kind"
    for missing in sorted(folder for folder in KINDS if Path(f"Sources/InletPipelines/{folder}/{folder}.swift") not in TEXT):
        yield f"Sources/InletPipelines/{missing}/{missing}.swift is missing: has the kind another name now?"


def without(pattern, files, texts, words=""):
    """The check that a pattern stands in none of these files."""
    return lambda: (f"{name}:{line_of(texts[name], match.start())}: {match[0]}{words}" for name in files
                    for match in pattern.finditer(texts[name]))


def reasons_for_unsafe():
    for name in SOURCES:
        for match in NEEDS_REASON.finditer(CODE[name]):
            number = line_of(CODE[name], match.start())
            if not is_explained(TEXT[name].splitlines(), number):
                yield f"{name}:{number}: {match[0]} without a comment that gives the reason"


def is_explained(lines, number):
    """Whether a comment is on that line, or above it with nothing but lines of the same statement in between."""
    if "//" in lines[number - 1]:
        return True
    for above in range(number - 2, max(-1, number - 5), -1):
        line = lines[above].strip()
        if line.startswith("//"):
            return True
        if line in {"", "}"}:
            return False
    return False


def passed_over():
    """(file, line, what) of each `try?` and best effort, and of each `catch` for all errors that neither throws nor speaks of the error."""
    for name in SOURCES:
        for match in SWALLOWED.finditer(CODE[name]):
            yield name, line_of(CODE[name], match.start()), match[0].rstrip("(")
        for match in CATCH_ALL.finditer(CODE[name]):
            end = closing(CODE[name], match.end() - 1, "{", "}")
            # Not in the blanked text: what is said of an error stands in a string.
            if not re.search(r"\b(error|throw)\b", re.sub(r"//.*", "", TEXT[name][match.end():end])):
                inside = "//" in TEXT[name][match.end():end]
                yield name, line_of(CODE[name], match.start()), "" if inside else "catch"


def reasons_for_silence():
    for name, number, what in passed_over():
        if what and not is_explained(TEXT[name].splitlines(), number):
            yield f"{name}:{number}: {what} without a comment that says why silence is right"


def length_excused(name):
    return any(re.search(r"(?://|#) length: \S", line) for line in TEXT[name].splitlines()[:5])


def file_lengths():
    for name in FILES:
        if name.suffix in {".swift", ".c", ".h", ".py", ".sh", ".js", ".css"} and not length_excused(name):
            count = len(TEXT[name].splitlines())
            if count > FILE_LINES:
                yield f"{name}: {count} lines, more than {FILE_LINES}"


def function_lengths():
    for name in SOURCES + TESTS:
        if length_excused(name):
            continue
        for line, title, count in functions(CODE[name]):
            if count > FUNCTION_LINES:
                yield f"{name}:{line}: {title} has {count} lines, more than {FUNCTION_LINES}"


def debug_only():
    named = set()
    for name in SOURCES:
        allowed = debug_lines(CODE[name])
        lines = TEXT[name].split("\n")
        for match in DEBUG_ONLY.finditer(TEXT[name]):
            line = line_of(TEXT[name], match.start())
            if lines[line - 1].lstrip().startswith("//"):
                continue
            named.add(match[0])
            if line not in allowed:
                yield f"{name}:{line}: {match[0]} outside of #if DEBUG"
    for missing in sorted({"INLET_FAILPOINT", "INLET_PROBE_PACE", "INLET_FAULTS", "INLET_FAULTS_LOG", "Armed"} - named):
        yield f"{missing} is read nowhere: has it another name now?"


def one_version():
    """Of `inlet --version` and of the package's changelog, whose first line is `inlet (0.9.0-1) …`."""
    program = re.search(r'static let version = "([^"]+)"', TEXT.get(Path("Sources/inlet/Inlet.swift"), ""))
    package = re.match(r"inlet \((?:\d+:)?([^)]+?)(?:-[^-)]*)?\)", TEXT.get(Path("packaging/deb/changelog"), ""))
    if not program or not package or program[1] != package[1]:
        yield (f"Sources/inlet/Inlet.swift: version {program and program[1]}; "
               f"packaging/deb/changelog begins with {package and package[1]}")


def names_in_pages():
    """Of the manual for developers: a page that names a file or function sends a reader there."""
    if Path("Sources/InletAgent/InletAgent.docc/Walk.md") not in PAGES:
        yield "Sources/InletAgent/InletAgent.docc/Walk.md is missing"
    for page, text in PAGES.items():
        if page.parts[0] != "Tests":
            yield from unnamed(page, text, CODE)


def forgotten():
    """What is declared in one place and has to be named in another, where no compiler asks for it."""
    declared = Path("Sources/InletCore/Settings/ConfigKeys.swift")
    keys = re.findall(r'package let (\w+) = Key\(\s*"[^"]*", (?!\.section)', TEXT[declared])
    readers = [CODE[name] for name in SOURCES if name.parts[1] == "InletConfig" or name.name == "Proxy.swift"]
    for key in keys:
        if not any(re.search(rf"\.{key}\b", code) for code in readers):
            yield f"{declared}: {key} is read nowhere"
    folder = Path("Sources/InletDashboard/Endpoints")
    table = re.search(r"static let all: .*?\n    \}?\n", TEXT[folder / "Endpoints.swift"], re.S)[0]
    for name in (name for name in SOURCES if name.parent == folder):
        for endpoint in re.findall(r"static (?:let|func) (\w+)(?:\([^)]*\) -> \w+<[^>]*> \{| = (?:Typed)?Endpoint\b)", TEXT[name]):
            if not re.search(rf"\b{endpoint}\b", table):
                yield f"{name}: {endpoint} is not in Endpoints.all"
    letters = re.findall(r'key: "(\w)"', TEXT[Path("Sources/InletWeb/page/views.js")])
    for letter in sorted({letter for letter in letters if letters.count(letter) > 1}):
        yield f"Sources/InletWeb/page: two views have the key {letter}"


CHECKS = [
    ("one dependency, one door", one_door),
    ("what is particular to a kind of destination is in its folder", kinds_at_home),
    ("no forbidden words", without(FORBIDDEN, SOURCES, CODE)),
    ("nothing is left to do", without(UNFINISHED, SOURCES, TEXT)),
    ("unsafe annotations give their reason", reasons_for_unsafe),
    (f"errors that are passed over give the reason ({sum(1 for _ in passed_over())} of them)", reasons_for_silence),
    (f"files have at most {FILE_LINES} lines", file_lengths),
    (f"functions have at most {FUNCTION_LINES} lines", function_lengths),
    ("the page's files are formatted", without(UNFORMATTED, WEB, TEXT, ": not as a formatter has it")),
    ("the page's scripts are as a linter wants them", without(LOOSE, [name for name in WEB if name.suffix == ".js"], TEXT)),
    ("no paths of one machine", without(LOCAL_PATH, FILES, TEXT)),
    ("no skipped tests", without(SKIPPED_TEST, TESTS, CODE, ": a test that does not count")),
    ("links between the pages lead somewhere", lambda: broken_links(ROOT, PAGES)),
    ("files and functions that the pages name are there", names_in_pages),
    ("keys are read, endpoints served, views shown", forgotten),
    ("the package has the program's version", one_version),
    ("commands say their names", without(UNNAMED_COMMAND, SOURCES, CODE, " without commandName")),
    ("what tests arm is in debug builds only", debug_only),
]


def main():
    if not SOURCES or not WEB:
        sys.exit("no Swift sources, or no files of the page: nothing was checked")
    failed = 0
    for title, check in CHECKS:
        findings = list(check())
        failed += bool(findings)
        print(f"{'FAIL' if findings else 'ok  '}  {title}")
        for finding in findings:
            print(f"        {finding}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
