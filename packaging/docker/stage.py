"""Carries out the last stage of a Dockerfile in a Debian tree, for test.sh: stage.py DOCKERFILE TREE PACKAGE.

RUN is run in the tree, COPY copies (from another stage: PACKAGE). Prints what an image would remember, as arrays of bash. An
instruction that is not known here is an error: what is not carried out must not look as if it were.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def instructions(text):
    """[(word, rest)] of the last stage, its FROM left out. Comments go, continued lines are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = [line.strip().split(None, 1) for line in joined.splitlines() if line.strip()]
    last = max(index for index, (word, *_) in enumerate(found) if word == "FROM")
    return [(word, rest) for word, rest in found[last + 1:]]


def copy(rest, tree, package):
    *options, source, target = rest.split()
    staged = any(option.startswith("--from=") for option in options)
    place = tree / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(package if staged else ROOT / source, place)


def carry_out(word, rest, tree, package, image):
    if word == "RUN":
        environment = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", **dict(pair.split("=", 1) for pair in image["env"])}
        subprocess.run(["chroot", tree, "/bin/sh", "-c", rest], env=environment, stdout=sys.stderr, check=True)
    elif word == "COPY":
        copy(rest, tree, package)
    elif word == "ENV":
        image["env"] += shlex.split(rest)
    elif word in {"VOLUME", "ENTRYPOINT", "CMD", "HEALTHCHECK"}:
        image[word.lower()] = json.loads(rest.split(" CMD ", 1)[-1])
    elif word == "STOPSIGNAL":
        image["stopsignal"] = [rest]
    else:
        sys.exit(f"stage.py does not know {word}")


def main():
    dockerfile, tree, package = map(Path, sys.argv[1:])
    image = {"env": []}
    for word, rest in instructions(dockerfile.read_text()):
        carry_out(word, rest, tree, package, image)
    for name, values in image.items():
        print(f"{name}=({shlex.join(values)})")


if __name__ == "__main__":
    main()
