"""Checks of the page when the agent is gone, and when it is back."""

import re
import time
from contextlib import closing

from page import Page
from station import until


def login_after_a_kill(page, station):
    """After kill -9 the page shows the age of its data; the login outlives it, and the page shows the new agent's state."""
    page.go("files")
    page.shows("harbour.jpg")
    station.kill()
    page.shows("No connection to Inlet", within="#banners", seconds=20)
    page.shows("connection lost", within="#connection")
    page.picture("connection-lost")
    page.press("Keys", ".tools")
    page.press("Close", "dialog")
    station.put("photos/while away.jpg", bytes(1000))
    station.start()
    page.shows("while away.jpg", seconds=40)
    assert not page.run("return document.querySelector('#secret')"), "it asks for a login that it has"
    compare(page, station)


def truth_after_a_kill(page, station):
    """Without a login too, the page reads everything again after kill -9 and a restart, and agrees with the agent."""
    page.read(station.url + "/#/")
    page.shows("slow/interview.mov")
    page.run("window.marker = 1")
    started = station.get("status")["started_at"]
    station.kill()
    page.shows("No connection to Inlet", "Showing data from", within="#banners", seconds=20)
    assert page.run("return document.body.classList.contains('stale')"), "old numbers look like new ones"
    station.put("photos/meanwhile.jpg", bytes(1000))
    began = int(time.time() * 1000)
    station.start()
    assert station.get("status")["started_at"] != started
    page.shows("live", within="#connection", seconds=45)
    page.hides("No connection", "#banners")
    page.shows("Inlet restarted at", within="#banners")
    resumes(page, station)
    station.ends("meanwhile.jpg", "delivered")
    compare(page, station)
    told = page.text("figcaption")
    assert "in the last hour" not in told, f"an agent knows nothing of before its start: {told}"
    page.go("log")
    page.shows("meanwhile.jpg", within="#lines")
    first = page.run("""return Math.min(...[...document.querySelectorAll('#lines time')]
        .map((node) => new Date(node.dateTime) - arguments[0]))""", began)
    assert first >= 0, f"events of the old agent are among the new one's: {first} ms"
    page.go("files")
    page.shows("meanwhile.jpg")
    assert page.run("return window.marker") == 1, "the page was loaded again"


def post(page, path, order):
    status = page.run("""return fetch('/api/v1/' + arguments[0], { method: 'POST', body: JSON.stringify(arguments[1]),
        headers: { 'Content-Type': 'application/json', 'X-Inlet': '1' } }).then((answer) => answer.status)""", path, order)
    assert status == 200, f"{path}: {status}"


def resumes(page, station):
    """The page shows how many of the files that waited at the kill have resumed, and at the end the result."""
    def told():
        now = station.get("status").get("resuming")
        # Both may have changed in between.
        return now and now["of"] >= 3 and f"{now['resumed']} of {now['of']} resumed" in page.text("#banners")
    until(told, 20, "the banner says what the agent does")
    page.picture("restarted")
    post(page, "limits", {"limit": "off", "destination": "spiral"})
    station.ends("interview.mov", "delivered", 40)
    page.shows("1 of 3 resumed", within="#banners")
    # Nobody tries what waits for a store that is away, until that is back.
    away = [station.job(name)["job"] for name in ("waits.mov", "waits too.mov")]
    post(page, "queue/cancel", {"jobs": away, "states": [], "labels": {}})
    until(lambda: "resuming" not in station.get("status"), 20, "all that waited has ended or been tried")
    page.shows("Files that waited at the start", "1 of 3 resumed, 2 failed", within="#banners")
    page.picture("resumed")


def compare(page, station):
    """The overview's counts and health equal the agent's."""
    page.go("")

    def equal():
        status = station.get("status")
        text = page.text()
        wanted = [f"{files:,} {state}" for state, files in status["files"].items() if files]
        return (page.text(".sentence") == status["health"]["sentence"] and f"{status['seen']:,} files seen" in text
                and all(part in text for part in wanted))
    until(equal, 20, "the page counts what the agent counts")


def numbers_of_a_language(page, station):
    """Numbers and times are those of the browser's language; words and units stay English."""
    size = (1 << 20) + (1 << 19)
    station.put("photos/one and a half.jpg", b"\xff\xd8\xff" + bytes(size - 3))
    job = station.ends("one and a half.jpg", "delivered")["job"]
    hour = "return document.querySelector('main .facts time').innerText"
    for languages, text, time in (
        ("de-DE", "1,5 MiB (1.572.864 bytes)", r"\d\d:\d\d:\d\d"),
        ("en-US", "1.5 MiB (1,572,864 bytes)", r"\d\d:\d\d:\d\d\s[AP]M"),
    ):
        with closing(Page(page.pictures, languages)) as other:
            other.read(f"{station.url}/#/files/{job}")
            other.shows(text, "Admitted", within=".head")
            # On the day after, the date stands before it.
            assert re.fullmatch(r"(\S+ )?" + time, other.run(hour)), other.run(hour)
            exact = other.run("return document.querySelector('main .facts time').dateTime")
            assert re.match(r"\d{4}-\d\d-\d\dT", exact), f"not the machine's form: {exact}"
            assert other.run("return document.documentElement.lang") == "en"
            other.go("")
            other.picture(f"overview-{languages}")


def without_a_stream(page, station):
    """Without the event stream, the page polls every two seconds and shows that."""
    with closing(Page(page.pictures)) as other:
        other.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/v1/events"]})
        other.open(station.url + "/#/files")
        other.shows("updates every 2 s", within="#connection", seconds=20)
        other.run("window.marker = 1")
        station.put("photos/polled.jpg", bytes(1000))
        other.shows("polled.jpg", seconds=20)
        assert other.run("return window.marker") == 1, "the page was loaded again"
        faults = other.faults(r"api/v1/events")
        assert not faults, f"the console says {faults}"
