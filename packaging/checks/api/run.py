"""Asks a running agent what its OpenAPI document describes: run.py [QUESTIONS], with INLET_BINARY in the environment.

Twice: an agent without secrets may answer anything but a server's error, and in the form that the document says; one with
secrets must refuse whoever has none. Afterwards it is still the same process, and says that it is well.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "browser"))
from station import Agent, until  # noqa: E402

# More than a run takes on a slow machine.
LONGEST = 1800


class Described(Agent):
    """An agent whose document is held against what it answers."""

    def __init__(self, base, secrets):
        super().__init__(base, secrets)
        self.settings["routes"] = [
            {"name": "papers", "match": {"path": "papers/**"}, "validate": {"extensions": ["pdf"]}, "to": "library"},
            {"name": "rest", "to": "library", "key": "{dir}/{name}"},
        ]

    def fill(self):
        """Files that were delivered, and one that was refused."""
        for name in ("a.txt", "b c.mov", "papers/not a paper.exe", "<img src=x>.txt"):
            self.put(name)
        until(lambda: len(self.get("receipts")) >= 3, 30, "the files have ended")

    def is_well(self):
        """The same process still answers, and nothing happened that was not to happen."""
        until(lambda: self.answers() and self.get("status")["running"], 30, "it is still ready")
        found = re.findall(r'.*(?:"internal"|unexpected error:|Fatal error).*', self.agent.log.read_text())
        if found:
            sys.exit("its log tells of what was not to happen: " + found[0][:2000])


def asked(document, needs):
    """The operations with one of `needs`; an event stream never ends, and is left out. No credentials are made up."""
    document.pop("security", None)
    document["components"].pop("securitySchemes", None)
    kept = {}
    for path, operations in document["paths"].items():
        chosen = {
            method: {key: value for key, value in operation.items() if key != "security"}
            for method, operation in operations.items()
            if operation["x-inlet-need"] in needs and "text/event-stream" not in json.dumps(operation["responses"])
        }
        if chosen:
            kept[path] = chosen
    document["paths"] = kept
    return document


def ask(agent, document, questions, checks, environment):
    """Runs schemathesis; says what it found and ends where that is anything. Returns how much it asked."""
    file = agent.base / "document.json"
    file.write_text(json.dumps(document))
    run = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")), "run", str(file), "--url", agent.url, "--checks", checks,
            "--phases", "examples,coverage,fuzzing", "--seed", "1", "--max-examples", str(questions), "--workers", "1",
            "--request-timeout", "60", "--warnings", "off", "--no-color",
        ],
        cwd=agent.base, env=os.environ | {"PYTHONPATH": str(HERE)} | environment, timeout=LONGEST,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout[-12000:])
    count = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    if not count or count[1] != count[2] or int(count[1]) < len(document["paths"]):
        sys.exit("not all that was asked was judged:\n" + run.stdout[-12000:])
    return int(count[1])


def main():
    questions = int((sys.argv[1:] or [50])[0])
    for has_secrets, needs, each, checks, environment, said in (
        (False, {"nothing", "read", "full"}, questions,
         "not_a_server_error,response_schema_conformance,content_type_conformance", {},
         "questions: no server's error, each answer as described"),
        (True, {"read", "full"}, max(1, questions // 10), "refused",
         {"SCHEMATHESIS_HOOKS": "strangers"}, "questions of a stranger: all refused"),
    ):
        with tempfile.TemporaryDirectory(prefix="inlet-api-", ignore_cleanup_errors=True) as base, \
                closing(Described(Path(base), has_secrets)) as agent:
            agent.start()
            agent.fill()
            document = asked(agent.get("openapi.json"), needs)
            count = ask(agent, document, each, checks, environment)
            agent.is_well()
        print(f"ok    {len(document['paths'])} paths, {count} {said}")


if __name__ == "__main__":
    main()
