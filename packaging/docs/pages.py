"""Writes the man pages of a built inlet: inlet(1), one page a command, inlet.yaml(5).

    pages.py BINARY FOLDER [--lint]

They are made of what the program says of itself, so that they cannot be behind it, and are not kept. With --lint each is
put through groff (and mandoc, where it is installed), every warning of which is an error. Exits 1 when a command, an
option or the formatting is not as it should be.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import commands
import configuration
from program import Program


def write(binary, folder):
    """Returns the pages' paths and what is not explained."""
    program = Program(binary)
    root, when, version = program.root, program.day, program.version
    pages = {"inlet.1": commands.main_page(root, program.reference["exits"], when, version),
             "inlet.yaml.5": configuration.page(program.schema, when, version)}
    for command in commands.subcommands(root):
        pages[f"inlet-{command['commandName']}.1"] = commands.command_page(command, when, version)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="ascii")
    return [folder / name for name in pages], list(commands.unexplained("inlet", root))


def linters():
    if shutil.which("groff"):
        # As man(1) calls it on a terminal of 80 columns.
        yield ["groff", "-t", "-man", "-ww", "-Tutf8", "-rLL=78n", "-z"]
    if shutil.which("mandoc"):
        # STYLE is about dialects; the day may be of the next time zone's tomorrow.
        yield ["mandoc", "-T", "lint", "-W", "warning"]


def lint(pages):
    for linter in linters():
        for page in pages:
            done = subprocess.run([*linter, str(page)], capture_output=True, text=True, timeout=60)
            if text := (done.stdout + done.stderr).strip():
                yield f"{linter[0]}: {text}"


def main(arguments):
    names = [name for name in arguments if name != "--lint"]
    if len(names) != 2:
        sys.exit(__doc__)
    pages, findings = write(names[0], Path(names[1]))
    if "--lint" in arguments:
        if not any(linters()):
            print("neither groff nor mandoc is installed: the pages were written and not looked at")
        findings += lint(pages)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
