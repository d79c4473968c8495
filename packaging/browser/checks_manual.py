"""Checks of the manual: as files of a disk, as the agent serves it, and as DocC's archive."""

import http.server
import os
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from station import until

MANUAL = Path(os.environ["INLET_MANUAL"])
ARCHIVE = os.environ.get("INLET_ARCHIVE")


def from_a_disk(page, station):
    """The manual opens from a disk with the network off: every page, in light and dark, and on a phone."""
    page.network(False)
    try:
        for file in sorted(MANUAL.glob("*.html")):
            page.open(file.as_uri())
            for scheme in ("light", "dark"):
                page.emulate(scheme)
                page.audit(f"{file.name}, {scheme}")
            page.emulate(None)
            page.phone(True)
            wide = page.run("return document.documentElement.scrollWidth")
            assert wide <= 360, f"{file.name} is {wide} wide"
            page.phone(False)
            page.picture(f"manual-{file.stem}")
        walk(page, MANUAL.as_uri())
    finally:
        page.phone(False)
        page.network(True)


def walk(page, place):
    """By its links from the first page to a chapter of another one."""
    page.open(f"{place}/index.html")
    page.press_link("Log events", "#_pages")
    page.shows("Log events", within="h1")
    assert page.text("#_pages a[aria-current]") == "Log events", "the list does not mark the page"
    page.press_link("job", ".contents")
    until(lambda: page.run("return location.hash") == "#job", what="the link's anchor")
    top = page.run("return document.getElementById('job').getBoundingClientRect().top")
    assert 0 <= top < 200, f"the chapter is at {top}"
    page.shows("job.retry")


def from_the_agent(page, station):
    """The agent serves the manual below /manual/, with a policy of its own and no script."""
    page.open(station.url + "/manual")
    page.shows("Inlet", within="h1")
    walk(page, station.url + "/manual")
    policy = page.run("""return fetch('/api/v1/session').then(() => 'allowed', () => 'refused')""")
    assert policy == "refused", "a page of the manual may ask the API"
    page.open(station.url + "/manual/no-such-page.html")


def archive(page, server):
    """DocC's archive of the manual, from a server of static files."""
    page.open(server.url + "/documentation/inlet/")
    until(lambda: page.find("h1"), 20, "the archive draws its first page")
    page.open(server.url + "/documentation/inlet/glossary/")
    page.shows("Glossary", within="h1", seconds=20)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def archive_server():
    """DocC's archive on loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=ARCHIVE))
    server.port = server.server_address[1]
    server.url = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()


CHECKS = [(from_a_disk, None), (from_the_agent, r"Content Security Policy|status of 404")]
ARCHIVE_CHECKS = [(archive, None)] if ARCHIVE else []
