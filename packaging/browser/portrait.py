"""The README's pictures, of a real agent: portrait.py PAGE.png [TERMINAL.png], with INLET_BINARY in the environment.

Several destinations, three transfers that a limit slows down, a file that failed, and two that wait for a store that
is away. The first picture shows the overview, 1280 pixels wide, in the light theme; the second one `inlet status --watch`.
"""

import random
import shutil
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import terminal
from page import Page
from station import Sandbox, Station, agent, until

MIB = 1 << 20
# Long enough for the rate's graph to have a line.
SECONDS = 40


def settings(station, sandbox):
    """Its own configuration, beside what every station has."""
    return {
        "destinations": {
            "library": {"type": "folder", "path": str(station.library)},
            "r2": {
                "type": "r2", "api": sandbox.place["spiral"], "dialect": "v1", "api_key": sandbox.place["api_key"],
                "part_size": "5MiB", "bandwidth": "1536KiB/s",
            },
            "archive": sandbox.s3(bandwidth="900KiB/s"),
            # Nothing listens there.
            "stage": sandbox.s3(endpoint="http://127.0.0.1:9"),
        },
        "routes": [
            {"name": "gigs", "match": {"path": "gigs/**"}, "to": "r2"},
            {"name": "masters", "match": {"path": "masters/**"}, "to": "archive"},
            {"name": "stage", "match": {"path": "stage/**"}, "to": "stage"},
            {"name": "blocked", "match": {"path": "press/**"}, "to": "library", "key": "a-file/{name}",
             "retry": {"attempts": 1}},
            {"name": "photos", "to": "library", "key": "{dir}/{name}"},
        ],
    }


def work(station):
    """What somebody drops in half an hour, in less than a minute."""
    content = random.Random(7).randbytes
    station.put("gigs/2026/encore 4k.mov", content(110 * MIB))
    station.put("masters/Blue Moon.wav", content(64 * MIB))
    for name in ("stage/finale.mp4", "stage/soundcheck.mp4"):
        station.put(name, content(3 * MIB))
    station.put("press/flyer.pdf", b"%PDF-1.7\n" + content(90000))
    station.ends("flyer.pdf", "failed")
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        number += 1
        station.put(f"photos/harbour {number:02}.jpg", b"\xff\xd8\xff" + content(2 * MIB + 40000 * number))
        if number == 3:
            station.put("gigs/2026/opening.mov", content(60 * MIB))
        time.sleep(2)


def draw(page, text, picture):
    """Renders what a terminal shows, and nothing around it."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(terminal.page("inlet status --watch", text))
        file.flush()
        page.driver.get(f"file://{file.name}")
        page.one("figure").screenshot(str(picture))


def main():
    picture, *screens = [Path(name).absolute() for name in sys.argv[1:]]
    # Its name is in the picture.
    base = Path(tempfile.gettempdir()) / "inlet-demo"
    # A run that was killed may have left it.
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    with Sandbox(base) as sandbox, closing(Station(base, sandbox, False)) as station:
        station.settings |= settings(station, sandbox)
        station.start()
        with closing(Page(picture.parent)) as page:
            page.emulate("light")
            page.read(station.url + "/")
            work(station)
            page.shows("is down", within=".health", seconds=40)
            until(lambda: len(page.find("main progress")) >= 3, what="three bars")
            page.shows("left", within=".progress", seconds=15)
            page.picture(picture.stem)
            for screen in screens:
                command = [agent.binary(), "status", "--watch", "--config", str(station.file)]
                with closing(terminal.Terminal(command)) as watch:
                    draw(page, watch.picture("KiB/s"), screen)
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
