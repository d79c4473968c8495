"""Runs the fuzzer's readers, a few at a time, and tells how often each ran and what broke it. Run fuzz.sh.

A reader begins with the corpus that the tests read, with further files of the project, and with what earlier runs found.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from measure import table

CORPORA = Path("Tests/FuzzTests/Corpora")
FOUND = Path(".build-fuzz/corpora")
LEAKS = Path("packaging/checks/sanitize/leak.txt")
# Beyond these one input has hung, or took memory that no input may take.
TIMEOUT_S, MEMORY_MIB = 20, 2048
# Words that no mutation finds soon; those of the configuration are taken from the file that names every key.
WORDS = {
    "template": "category owner epoch_ms name stem ext dir folder[1] sha256:8 seq volume mtime: now: captured: @UTC {{ }}",
    "glob": "** * ? [!a] [[:alpha:]] \\\\ / .",
    "names": "../ \\x00 \\x1b[2J \\x0d\\x0a \\xe2\\x80\\xae \\xd8\\x9c \\xff \" <script> ]]> %0d",
    "urls": "https:// http:// @ # ? [::1] 127.0.0.1 169.254.169.254 0x7f.1 localhost .. %2e \\\\ :0 X-Amz-Signature=",
    "answers": "HTTP/1.1\\x20 \\x0d\\x0a Location: Upload-Offset: Retry-After: Content-Range: ETag: Date: cf-ray: Repr-Digest: "
               "application/json upload_id part_urls asset_id delete_token canary-4711 error message details frames "
               "downloadUrl commercialImages jobId uploadUrl publicUrl <Error> <Code> <Message> <html> ://",
    "json": "{ } [ ] : , \\\" \\\\u d800 true false null 1e999 -0 markers session space",
    "xml": "<![CDATA[ ]]> <!-- --> <?xml ?> <!DOCTYPE &amp; &#x26; &#0; </ /> ListBucketResult Contents Key Size",
    "mhl": "<hashlist> <hashes> <hash> <path> </ ascmhldirectory c4 xxh64 creatorinfo tool 0001_ .mhl ../",
    "pictures": "Exif\\x00\\x00 II*\\x00 MM\\x00* \\xff\\xd8 \\xff\\xe1 FUJIFILMCCD-RAW IHDR eXIf RIFF WEBP EXIF \\x87\\x69 "
                "\\x90\\x03 \\x90\\x11 2026:11:20",
    "movies": "ftyp moov mvhd meta iinf infe iloc keys ilst data uuid CMT1 CMT2 mdat Exif heic "
              "com.apple.quicktime.creationdate",
    "certificate": "\\x30\\x82 \\xa0\\x03 -----BEGIN -----END \\x02\\x01",
}
# Each field begins with its length.
WORDS["host"] = " ".join(
    f"\\x{len(word):02x}\\x00\\x00\\x00{word}" for word in
    "commands run cancel holders ended failed exited signalled stuck {run} {in} 1 -1 65536".split())
MORE = {"settings": ["config", "config/examples", "Tests/InletConfigTests/Fixtures/good", "Tests/InletConfigTests/Fixtures/bad"]}


def readers():
    """Names, and the longest input worth trying."""
    lines = subprocess.run([os.environ["INLET_FUZZ"]], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: int(longest) for name, longest in (line.split() for line in lines)}


def words(reader):
    if reader in ("settings", "sidecar"):
        return sorted(set(re.findall(r"[a-z_0-9]+: ?|\$\{env:KEY\}|&a|\*a|<<:|!!binary", Path("config/inlet.yaml").read_text())))
    return WORDS.get(reader, "").split()


def quoted(word):
    """As a dictionary has it (llvm.org/docs/LibFuzzer.html, "Dictionaries"): what needs a backslash has one already."""
    return '"' + word + '"'


def run(reader, longest, seconds):
    """- Returns: libFuzzer's words, and whether it ended well."""
    found = FOUND / reader
    found.mkdir(parents=True, exist_ok=True)
    dictionary = FOUND / f"{reader}.dict"
    dictionary.write_text("".join(quoted(word) + "\n" for word in words(reader)))
    # An empty one is an error to libFuzzer.
    options = [f"-dict={dictionary}"] if dictionary.stat().st_size else []
    command = [
        os.environ["INLET_FUZZ"], reader, f"-max_total_time={seconds}", f"-max_len={longest}", f"-timeout={TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MIB}", f"-artifact_prefix={found}-", "-print_final_stats=1", *options,
        str(found), str(CORPORA / reader), *MORE.get(reader, []),
    ]
    # Swift's own report of a crash would come before libFuzzer's, which keeps the input.
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no", "LSAN_OPTIONS": f"suppressions={LEAKS}:print_suppressions=0"}
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)
    return ended.stderr, ended.returncode == 0


def keep(reader, report):
    """Puts the input that broke the reader where the tests read it. - Returns: its path, or what is known instead."""
    written = re.search(r"Test unit written to (\S+)", report)
    if not written:
        return report.strip().splitlines()[-1:] or ["no word"]
    source = Path(written[1])
    target = CORPORA / reader / source.name.removeprefix(f"{reader}-")
    shutil.move(source, target)
    return [str(target)]


def figures(report):
    """Executions, seconds they took, parts of the program reached, and peak memory, from libFuzzer's last words."""
    def last(pattern):
        found = re.findall(pattern, report)
        return int(found[-1]) if found else 0
    return (last(r"number_of_executed_units:\s+(\d+)"), last(r" runs in (\d+) second"), last(r" cov: (\d+)"),
            last(r"peak_rss_mb:\s+(\d+)"))


def said(report):
    """The sentence that a broken promise ended with, or the first words of the sanitizer."""
    found = re.search(r"Fatal error: (.*)|(ERROR: .*)", report)
    return found[0][:300] if found else ""


def fuzz(chosen, seconds, jobs):
    rows, broken, total = [], [], 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {name: pool.submit(run, name, longest, seconds) for name, longest in chosen.items()}
        for name, future in runs.items():
            report, is_well = future.result()
            count, took, reached, memory = figures(report)
            total += count
            rows.append([name, f"{count:,}", f"{count // max(took, 1):,}", reached, memory, "" if is_well else "BROKEN"])
            if not is_well:
                broken.append([name, *keep(name, report), said(report)])
    table(f"fuzzed for {seconds} s each", ["", "executions", "a second", "edges", "MiB", ""], rows)
    print(f"\n{total:,} executions, {len(broken)} of {len(chosen)} readers broken")
    for name, where, words_ in broken:
        print(f"  {name}: {words_}\n    {where}")
    return 1 if broken else 0


def self_test():
    report = "#9 NEW cov: 12 ft\n#99 DONE cov: 34 ft\nDone 99 runs in 3 second(s)\nstat::number_of_executed_units: 99\n" \
             "stat::peak_rss_mb: 77\n"
    if figures(report) != (99, 3, 34, 77):
        raise SystemExit(f"fuzz: {figures(report)} from\n{report}")
    if said("x\nFatal error: names: a NUL\n") != "Fatal error: names: a NUL":
        raise SystemExit("fuzz: the sentence is not found")
    print("ok    fuzz")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("seconds", type=int, nargs="?", default=60)
    options.add_argument("readers", nargs="*")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--self-test", action="store_true")
    given = options.parse_args()
    if given.self_test:
        return self_test()
    known = readers()
    if unknown := set(given.readers) - set(known):
        options.error(f"no reader is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return fuzz({name: known[name] for name in given.readers or known}, given.seconds, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
