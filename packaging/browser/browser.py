"""Tests the dashboard and the manual in a real browser: browser.py [FOLDER-FOR-PICTURES]. browser.sh sets the environment.

Each check is a function; CHECKS names them in their order, with what the console may say because of them.
"""

import os
import shutil
import sys
import tempfile
import traceback
from contextlib import closing
from pathlib import Path

import checks_action
import checks_cards
import checks_files
import checks_first
import checks_fleet
import checks_look
import checks_manual
import checks_story
import checks_truth
import postgres
from page import Page
from station import HOSTILE, READER, TOKEN, CardStation, FleetStation, Sandbox, Station, until

LOGGED_OUT = r"status of 401"
AWAY = r"net::ERR_|status of 401"


def prepare(station):
    """Files of every kind: delivered, rejected, failed, waiting for a store that is down, being sent; hostile names."""
    for name in HOSTILE:
        station.put(name)
    for name, content in {
        "photos/harbour.jpg": b"\xff\xd8\xff" + bytes(4000), "papers/setup.exe": b"MZ", "away/waits.mov": bytes(5000),
        "away/waits too.mov": bytes(5000), "blocked/lost.mov": bytes(5000), "slow/interview.mov": os.urandom(24 << 20),
        "films/parts.mov": os.urandom(12 << 20),
    }.items():
        station.put(name, content)
    for name, state in {"harbour.jpg": "delivered", "parts.mov": "delivered", "setup.exe": "rejected", "lost.mov": "failed"}.items():
        station.ends(name, state)
    until(lambda: station.job("waits.mov") and station.job("waits too.mov"), what="the waiting files are taken in")


def log_in(page, station):
    """Login: a wrong secret gets a message, a right one opens the page."""
    page.open(station.url + "/")
    page.shows("Log in", within="h1")
    page.log_in("not the secret")
    # The station has no password.
    page.shows("Wrong token", within="#fault")
    assert page.find("#secret"), "a wrong secret let somebody in"
    assert not page.find("#nav a"), "the views are shown to nobody"
    page.audit()
    page.picture("login")
    page.log_in(TOKEN)
    page.shows("Overview", within="h1")
    page.shows("live", within="#connection")
    cookies = page.run("return document.cookie")
    assert cookies == "", f"a script can read the session: {cookies}"


def read_only(page, station):
    """With the read-only token the page has no buttons, and shows the reason."""
    page.open(station.url + "/")
    page.press("Log out", ".tools")
    page.one("#secret")
    page.log_in(READER)
    page.shows("Read-only access")
    page.shows("read-only", within=".tools")
    for view in ("files", "destinations", "config"):
        page.go(view)
        page.shows("Read-only access")
        words = [node.text for node in page.find("main button")]
        assert not set(words) & {"Retry…", "Cancel…", "Pause…", "Set limit…", "Reload…", "Clear the queue…"}, words
    page.go("")
    page.shows("What needs you")
    assert not page.find(".needs button"), "a reader gets buttons"
    status = page.run("""return fetch('/api/v1/pause', { method: 'POST', body: '{}',
        headers: { 'Content-Type': 'application/json', 'X-Inlet': '1' } }).then((answer) => answer.status)""")
    assert status == 403, f"a reader paused everything: {status}"
    page.picture("read-only")
    page.press("Log out", ".tools")
    page.one("#secret")
    page.log_in(TOKEN)
    page.shows("live", within="#connection")


CHECKS = [
    (log_in, LOGGED_OUT), *checks_look.CHECKS, *checks_action.CHECKS, *checks_story.CHECKS, *checks_files.CHECKS,
    *checks_manual.CHECKS, (checks_fleet.no_fleet, r"status of 404"),
    (read_only, r"status of 40[13]"),
    (checks_truth.login_after_a_kill, AWAY),
]
OPEN_CHECKS = [
    (checks_truth.truth_after_a_kill, AWAY), (checks_truth.without_a_stream, None), (checks_truth.numbers_of_a_language, None),
]


def run(checks, page, station):
    failed = 0
    for check, allowed in checks:
        name = check.__doc__.split("\n")[0]
        try:
            check(page, station)
            faults = page.faults(allowed)
            assert not faults, f"the console says {faults}"
            strangers = page.strangers(f"127.0.0.1:{station.port}")
            assert not strangers, f"the page asked {strangers}"
            print(f"ok    {name}", flush=True)
        except Exception as error:
            failed += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL  {name}\n      {type(error).__name__}: {str(error)[:2000]}", flush=True)
            print(f"      {where.filename}:{where.lineno}", flush=True)
            page.picture(f"failed-{check.__name__}")
            page.faults(None)
    return failed


def main():
    pictures, failed = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else None, 0
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    base = Path(tempfile.mkdtemp(prefix="inlet-browser-"))
    with Sandbox(base) as sandbox:
        for secrets, checks in ((True, CHECKS), (False, OPEN_CHECKS)):
            with closing(Station(base / ("closed" if secrets else "open"), sandbox, secrets)) as station:
                station.start()
                prepare(station)
                with closing(Page(pictures)) as page:
                    failed += run(checks, page, station)
        with closing(checks_first.FirstStation(base / "first")) as station:
            station.start()
            with closing(Page(pictures)) as page:
                failed += run(checks_first.CHECKS, page, station)
        if CardStation.is_possible():
            with closing(CardStation(base / "cards", sandbox)) as station:
                station.start()
                with closing(Page(pictures)) as page:
                    failed += run(checks_cards.CHECKS, page, station)
        else:
            print("not tried: the cards' view; only root can mount disks")
        if FleetStation.is_possible():
            with closing(FleetStation(base / "fleet")) as station:
                station.start()
                with closing(Page(pictures)) as page:
                    failed += run(checks_fleet.CHECKS, page, station)
        else:
            print(f"not tried: the fleet's view; {postgres.missing()}")
    if checks_manual.ARCHIVE:
        with checks_manual.archive_server() as server, closing(Page(pictures)) as page:
            failed += run(checks_manual.ARCHIVE_CHECKS, page, server)
    else:
        print("not tried: DocC's archive of the manual; packaging/docs.sh makes it")
    if failed:
        print(f"{failed} checks failed; what the agent said is in {base}")
        sys.exit(1)
    shutil.rmtree(base, ignore_errors=True)
    tried = [*CHECKS, *OPEN_CHECKS, *checks_first.CHECKS, *checks_manual.ARCHIVE_CHECKS]
    tried += checks_cards.CHECKS if CardStation.is_possible() else []
    tried += checks_fleet.CHECKS if FleetStation.is_possible() else []
    print(f"all {len(tried)} checks hold")


if __name__ == "__main__":
    main()
