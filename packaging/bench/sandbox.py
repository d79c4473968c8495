"""`inlet sandbox` as a process of its own, and a configuration that delivers to all its servers."""

import json
import os
import subprocess
import sys
import time
import urllib.request

from measure import binary

MIB = 1 << 20
# One part, one chunk, and the largest file that goes in one request.
PART = 5 * MIB
POLICIES = ("keep", "archive", "delete")
# By the first folder of a file: its destination, the ending that it takes, and what its route says besides.
KINDS = {
    "spiral": ("spiral", "bin", ""),
    "other": ("other", "bin", ""),
    "s3": ("s3", "bin", ""),
    "stage": ("stage", "mp4", ', with: { org_name: bench, event_date: "2026-11-21", label: "{stem}" }'),
    "library": ("library", "bin", ""),
    "products": ("products", "mp4", ""),
    "spaces": ("spaces", "glb", ', with: { space: "{stem}" }'),
}
# Operations whose bodies are files, and of these the ones that send a part.
BODIES = {
    "spiral": ("part", "single"), "s3": ("putObject", "uploadPart"), "gighive": ("upload", "tusPatch"),
    "vopi": ("upload",), "roboscope": (),
}
PARTS = {"part", "uploadPart", "tusPatch"}
# What routes say besides where evidence is wanted: files of receipts, and lists with a digest that Python knows.
EVIDENCE = {
    "spiral": ", receipts: sidecar", "s3": ", receipts: folder", "units": ", manifest: { format: ascmhl, hash: md5 }",
}


class Sandbox:
    """The loopback servers of inlet, run by `program` (a file), keeping what they receive below `folder`."""

    def __init__(self, folder, program=None, trouble=0.0, seed=1):
        ready = folder / "sandbox.json"
        arguments = [program or binary(), "sandbox", "--dir", str(folder / "sandbox"), "--ready-file", str(ready)]
        if trouble:
            arguments += ["--trouble", str(trouble), "--seed", str(seed)]
        self._errors = open(folder / "sandbox.err", "wb")
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=self._errors)
        deadline = time.monotonic() + 30
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                sys.exit(f"{' '.join(arguments)} does not run: {(folder / 'sandbox.err').read_text()[-2000:]}")
            time.sleep(0.02)
        self.place = json.loads(ready.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()

    def report(self):
        with urllib.request.urlopen(self.place["control"] + "/", timeout=120) as answer:
            return json.load(answer)


def body_bytes(report, parts_only=False):
    """Bytes of files, or of parts of files, that the servers received, those of attempts that were cut off included."""
    return sum(report[name]["server"]["bytes"].get(operation, 0)
               for name, operations in BODIES.items() for operation in operations
               if operation in PARTS or not parts_only)


def write_config(folder, place, other=None, more="", evidence=False):
    """All destinations, one root, and routes by the first two folders of a file: its kind and its on_success.

    `other` is the URL of a second Spiral store, `more` what every route says besides, `evidence` asks for EVIDENCE. Units,
    with sidecars and a marker, go to the library and to S3.
    """
    (folder / "drop").mkdir(parents=True, exist_ok=True)
    (folder / "library").mkdir(exist_ok=True)
    extra = {kind: more + (EVIDENCE.get(kind, "") if evidence else "") for kind in [*KINDS, "units"]}
    spiral = "type: r2, dialect: v1, part_size: 5MiB, parallel_parts: 1"
    lines = [
        f"state_dir: {folder}/state",
        "log: { level: info, output: stderr, format: json }",
        "destinations:",
        f'  spiral: {{ {spiral}, api: "{place["spiral"]}", api_key: {place["api_key"]},'
        f' public_url: "{place["spiral"]}/public" }}',
        f'  s3: {{ type: s3, endpoint: "{place["s3"]}", region: us-east-1, bucket: {place["bucket"]},'
        f' access_key: {place["access_key"]}, secret_key: {place["secret_key"]}, part_size: 5MiB,'
        " multipart_threshold: 5MiB, parallel_parts: 1 }",
        f'  stage: {{ type: gighive, url: "{place["gighive"]}", user: uploader, password: {place["password"]},'
        " chunk_size: 5MiB, multipart_limit: 5MiB }",
        f'  products: {{ type: vopi, url: "{place["vopi"]}", poll: 1s, results: {folder}/results,'
        f' auth: {{ api_key: {place["api_key"]} }} }}',
        f'  spaces: {{ type: roboscope, url: "{place["roboscope"]}", storage: spiral }}',
        f"  library: {{ type: folder, path: {folder}/library }}",
    ]
    if other:
        lines.append(f'  other: {{ {spiral}, api: "{other}", api_key: bench }}')
    lines += ["watch:", f"  - {{ path: {folder}/drop, settle: 100ms }}", "routes:"]
    for kind in KINDS:
        destination, _, fields = KINDS[kind]
        if destination == "other" and not other:
            continue
        for policy in POLICIES:
            lines.append(f'  - {{ name: {kind}-{policy}, match: {{ path: "{kind}/{policy}/**" }}, to: {destination},'
                         f' key: "{{dir}}/{{name}}", on_success: {policy}{fields}{extra[kind]} }}')
    for policy in POLICIES:
        lines.append(f'  - {{ name: units-{policy}, match: {{ path: "units/{policy}/**", extensions: [mp4] }},'
                     f' to: [library, s3], key: "{{dir}}/{{name}}", on_success: {policy},'
                     " sidecars: { extensions: [xmp], wait: 2s }, unit: folder, completion: marker" + extra["units"] + " }")
    path = folder / "inlet.yaml"
    path.write_text("\n".join(lines) + "\n")
    os.chmod(path, 0o600)
    return path
