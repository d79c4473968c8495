"""Holds Unraid's template against compose.yaml: one container, described twice. Prints what differs; exits 1 when anything does.

    nas_template.py [TEMPLATE COMPOSE]
"""

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

PACKAGING = Path(__file__).resolve().parents[1]
# Unraid sets it in every container by itself.
SET_BY_UNRAID = {"TZ"}
# Who Unraid's shares belong to.
OWNER = {"PUID": "99", "PGID": "100"}


def described_by_template(path):
    """Names by kind, and the values of variables. Raises ParseError where the file is no XML."""
    root = xml.etree.ElementTree.parse(path).getroot()
    if (root.tag, root.get("version")) != ("Container", "2"):
        sys.exit(f"{path}: the root is not <Container version=\"2\">, which Unraid 6 reads")
    found = {"Path": set(), "Variable": set(), "Port": set()}
    values = {}
    for config in root.iter("Config"):
        # A secret: compose.yaml reads those from .env.
        if config.get("Mask") == "true":
            continue
        found[config.get("Type")].add(config.get("Target"))
        values[config.get("Target")] = (config.text or "").strip()
    options = set(root.findtext("ExtraParams", "").split())
    found["Capability"] = {option.removeprefix("--cap-add=") for option in options if option.startswith("--cap-add=")}
    found["Option"] = {option for option in options if not option.startswith("--cap-add=")}
    return found, values


def options_of_compose(text):
    """The keys of the service that are options of docker run, as such."""
    found = set()
    for key, option in [("init", "--init"), ("read_only", "--read-only")]:
        if re.search(rf"^    {key}: true\b", text, re.MULTILINE):
            found.add(option)
    for key, option in [("cap_drop", "--cap-drop"), ("security_opt", "--security-opt"), ("tmpfs", "--tmpfs")]:
        if listed := re.search(rf"^    {key}: \[(.*?)\]", text, re.MULTILINE):
            values = (value.strip(' "').removesuffix(":true") for value in listed[1].split(","))
            found |= {f"{option}={value}" for value in values}
    if grace := re.search(r"^    stop_grace_period: (\d+)s", text, re.MULTILINE):
        found.add(f"--stop-timeout={grace[1]}")
    return found


def described_by_compose(path):
    """The same of the one service; ports are in a comment, because a page needs a login first."""
    text = path.read_text()
    block = re.search(r"^    environment:\n((?: {6}.*\n)+)", text, re.MULTILINE)[1]
    added = re.search(r"^    cap_add:\n((?: {6}.*\n)+)", text, re.MULTILINE)[1]
    return {
        "Path": set(re.findall(r"^      - [./\w-]+:(/[\w/]+)", text, re.MULTILINE)),
        "Variable": set(re.findall(r"^ {6}(\w+):", block, re.MULTILINE)) - SET_BY_UNRAID,
        "Port": set(re.findall(r'ports: \["(?:[\d.]+:)?\d+:(\d+)"\]', text)),
        "Capability": set(re.findall(r"- (\w+)", added)),
        "Option": options_of_compose(text),
    }


def differences(template, compose):
    try:
        there, values = described_by_template(template)
    except xml.etree.ElementTree.ParseError as error:
        yield f"{template} is not well formed: {error}"
        return
    for kind, names in described_by_compose(compose).items():
        for name in sorted(names ^ there[kind]):
            only = compose if name in names else template
            yield f"{kind.lower()} {name} is only in {only}"
    for name, value in OWNER.items():
        if values.get(name) != value:
            yield f"{template}: {name} is '{values.get(name)}', and Unraid's shares belong to {value}"


def main():
    given = list(map(Path, sys.argv[1:])) or [PACKAGING / "nas/unraid-inlet.xml", PACKAGING / "docker/compose.yaml"]
    found = list(differences(*given))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
