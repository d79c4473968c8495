"""A configuration that delivers to all kinds of destinations, by the first two folders of a file: its kind and on_success."""

from pathlib import Path
from typing import Any

from agent import configure, route, spiral
from report import MIB
from servers import Sandbox

# One part, one chunk, and the largest file that goes in one request.
PART = 5 * MIB
POLICIES = ("keep", "archive", "delete")
# By the first folder of a file, which is also its destination: the ending that it takes, and what its route says besides.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "spiral": ("bin", {}), "other": ("bin", {}), "s3": ("bin", {}),
    "stage": ("mp4", {"with": {"org_name": "bench", "event_date": "2026-11-21", "label": "{stem}"}}),
    "library": ("bin", {}), "products": ("mp4", {}), "spaces": ("glb", {"with": {"space": "{stem}"}}),
}
UNITS = {"sidecars": {"extensions": ["xmp"], "wait": "2s"}, "unit": "folder", "completion": "marker"}
# What routes say besides where evidence is wanted: files of receipts, and lists with a digest that Python knows.
EVIDENCE: dict[str, dict[str, Any]] = {
    "spiral": {"receipts": "sidecar"}, "s3": {"receipts": "folder"}, "units": {"manifest": {"format": "ascmhl", "hash": "md5"}}}


def destinations(folder: Path, sandbox: Sandbox, other: str | None) -> dict[str, dict[str, Any]]:
    place, parts = sandbox.place, {"part_size": "5MiB", "parallel_parts": 1}
    found = {
        "spiral": spiral(place["spiral"], **parts, public_url=f"{place['spiral']}/public") | {"api_key": place["api_key"]},
        "s3": sandbox.s3(parallel_parts=1),
        "stage": {"type": "gighive", "url": place["gighive"], "user": "uploader", "password": place["password"],
                  "chunk_size": "5MiB", "multipart_limit": "5MiB"},
        "products": {"type": "vopi", "url": place["vopi"], "poll": "1s", "results": f"{folder}/results",
                     "auth": {"api_key": place["api_key"]}},
        "spaces": {"type": "roboscope", "url": place["roboscope"], "storage": "spiral"},
        "library": {"type": "folder", "path": f"{folder}/library"},
    }
    return found | ({"other": spiral(other, **parts)} if other else {})


def configure_everywhere(folder: Path, sandbox: Sandbox, other: str | None = None, evidence: bool = False,
                         **more: Any) -> Path:
    """`other` is the URL of a second Spiral store, `more` what every route says besides. Units, with sidecars and a marker, go
    to the library and to S3. All folders are made, and one, `staging`, from which files can be renamed into them."""
    for path in ("library", "staging", *(f"drop/{kind}/{policy}" for kind in (*KINDS, "units") for policy in POLICIES)):
        (folder / path).mkdir(parents=True)
    routes = []
    for kind, (ending, own) in [*KINDS.items(), ("units", ("mp4", UNITS))]:
        if kind == "other" and not other:
            continue
        extra = own | more | (EVIDENCE.get(kind, {}) if evidence else {})
        to = ["library", "s3"] if kind == "units" else [kind]
        for policy in POLICIES:
            routes.append(route(f"{kind}-{policy}", *to, path=f"{kind}/{policy}/**", key="{dir}/{name}", on_success=policy,
                                **extra))
            routes[-1]["match"] |= {"extensions": [ending]} if kind == "units" else {}
    return configure(folder, destinations(folder, sandbox, other), routes, {"settle": "100ms"})
