"""Checks of a person's work: search, details, actions, questions."""

import hashlib

from station import READER, TOKEN, until


def live_update(page, station):
    """A dropped file appears and arrives without a reload of the page."""
    page.go("files")
    page.run("window.marker = 1")
    station.put("photos/live.jpg", bytes(3000))
    page.shows("photos/live.jpg")
    until(lambda: any("live.jpg" in row and "delivered" in row for row in page.texts("tbody tr")),
          what="the row says that it arrived")
    assert page.run("return window.marker") == 1, "the page was loaded again"


def search(page, station):
    """Search and filters are in the address, and find the right files."""
    page.go("files")
    page.type("#q", "HARBOUR")
    until(lambda: "q=HARBOUR" in page.driver.current_url, what="the search is in the address")
    until(lambda: len(page.find("tbody tr")) == 1, what="one row is left")
    page.open(page.driver.current_url)
    until(lambda: len(page.find("tbody tr")) == 1, what="the address finds the same")
    page.go("files")
    page.choose("#state", "rejected")
    until(lambda: page.texts("tbody tr") and all("rejected" in row for row in page.texts("tbody tr")),
          what="only rejected ones")
    page.shows("exe")
    page.go("files")
    page.choose("#destination", "away")
    until(lambda: len(page.find("tbody tr")) == 2, what="the two that go to 'away'")
    page.go("files?q=there-is-no-such-file")
    page.shows("No matching files")


def story(page, station):
    """The page of a file has its deliveries, events and receipt."""
    job = station.ends("harbour.jpg", "delivered")["job"]
    page.go(f"files/{job}")
    page.shows("harbour.jpg", "verified by", "job.delivered", "Receipt")
    page.go("files/999999999")
    page.shows("999999999", within=".banner.bad")


def confirm(page, action, yes=None):
    """Asks for an action and says yes."""
    page.press(f"{action}…")
    page.press(yes or action, "dialog")


def set_limit(page, limit):
    page.press("Set limit…", "main section")
    page.type("#limit", limit)
    page.press("Set limit", "dialog")


def one_action(page, station):
    """An action asks first. After a no nothing changes; after a yes the page shows the result at once."""
    job = station.job("waits.mov")["job"]
    page.go(f"files/{job}")
    page.shows("pending", within=".head")
    page.press("Cancel…")
    page.shows(f"Cancel job {job}?", within="dialog")
    page.picture("confirmation")
    page.press("Go back", "dialog")
    assert station.get(f"jobs/{job}")["state"] == "pending", "it was done without a yes"
    confirm(page, "Cancel", "Cancel job")
    page.shows("cancelled", within=".head")
    assert station.get(f"jobs/{job}")["state"] == "cancelled"
    confirm(page, "Retry")
    page.shows("pending", within=".head")


def many(page, station):
    """An action on several files first shows their number and size."""
    page.go("files?destination=away")
    until(lambda: len(page.find("tbody tr")) == 2, what="two files")
    page.run("arguments[0].click()", page.one("#all"))
    page.shows("2 files selected")
    page.press("Cancel 2…")
    page.shows("Cancel 2 files, 9.8 KiB?", "waits too.mov", within="dialog")
    page.picture("selection")
    page.press("Cancel files", "dialog")
    page.shows("2 files done", within="#toast")
    until(lambda: station.job("waits too.mov")["state"] == "cancelled", what="both are cancelled")
    page.shows("Select all shown")
    page.run("arguments[0].click()", page.one("#all"))
    page.press("Retry 2…")
    page.press("Retry", "dialog")
    until(lambda: station.job("waits too.mov")["state"] == "pending", what="both are queued again")


def pause(page, station):
    """A paused destination gets no files, shows that, and continues after a resume."""
    card = ".card:has(h2 a[href$='library'])"
    page.go("destinations")
    page.press("Pause…", card)
    page.press("Pause", "dialog")
    page.shows("paused", within=card)
    station.put("photos/later.jpg", bytes(2000))
    until(lambda: station.job("later.jpg"), what="the file is taken in all the same")
    assert station.job("later.jpg")["state"] == "pending"
    page.go("")
    page.shows("library is paused")
    page.go("destinations")
    page.press("Resume", card)
    station.ends("later.jpg", "delivered")
    page.hides("paused", card)


def limit(page, station):
    """The page sets and shows a limit; an invalid one gets a message."""
    page.go("destinations")
    set_limit(page, "fast")
    page.shows("fast", within="#toast")
    set_limit(page, "700KiB/s")
    page.shows("700 KiB/s", within="main section")
    set_limit(page, "auto")
    page.hides("700 KiB/s", "main section")


def fact(page, title):
    """The text beside this title; empty without one."""
    return page.run("""return [...document.querySelectorAll('main .facts > div')]
        .find((row) => row.querySelector('dt').textContent === arguments[0])?.querySelector('dd').innerText ?? ''""", title)


def roots(page, station):
    """A watched folder shows its mode, its last event, and its incomplete files with the reason."""
    with open(station.drop / "still open.mov", "wb") as file:
        file.write(b"x")
        file.flush()
        page.go("roots")
        page.shows("watching")
        watched = station.get("status")["roots"][0]
        until(lambda: fact(page, "Mode") == "events (inotify)", what="how it is watched")
        until(lambda: fact(page, "Watches") == f"{watched['watches']:,}", what="how many watches it has")
        until(lambda: fact(page, "Last event").endswith(" ago"), what="when it last heard of a change")
        exact = page.run("""return [...document.querySelectorAll('.facts > div')]
            .find((row) => row.textContent.startsWith('Last event'))?.querySelector('time')?.title""")
        assert exact and exact.startswith("20") and "T" in exact, f"not the exact time: {exact}"
        page.shows("still open.mov", "a program has it open for writing")
        page.picture("settling")
    station.ends("still open.mov", "delivered")


def tester(page, station):
    """The route tester shows the route and the key of a path."""
    page.go("route")
    page.type("#path", "slow/next.mov")
    page.press("Test")
    page.shows("Route slow matches", "spiral")
    page.picture("route-answer")
    page.type("#path", "photos/<b>.jpg")
    page.press("Test")
    page.shows("Route rest matches", "<b>.jpg")
    assert not page.find("main b"), "a path became markup"


def log(page, station):
    """The log follows, filters, pauses, and links to the file."""
    page.go("log")
    page.shows("job.delivered", within="#lines")
    page.choose("#level", "warning")
    page.hides("job.delivered", "#lines")
    page.shows("warning", within="#lines")
    page.choose("#level", "info")
    page.type("#find", "harbour")
    until(lambda: "q=harbour" in page.driver.current_url, what="the search is in the address")
    page.shows("harbour.jpg", within="#lines")
    page.hides("setup.exe", "#lines")
    page.go("log")
    page.shows("setup.exe", within="#lines")
    page.press("Pause")
    station.put("photos/quiet.jpg", bytes(1000))
    station.ends("quiet.jpg", "delivered")
    page.shows("new event")
    assert "quiet.jpg" not in page.text("#lines"), "it is not paused"
    page.press("Follow")
    page.shows("quiet.jpg", within="#lines")
    page.run("""[...document.querySelectorAll('#lines a')]
        .findLast((node) => node.textContent.includes('quiet')).click()""")
    page.shows("Job ", within="h1")
    page.shows("quiet.jpg", within=".head")


def repeats(page, station):
    """A warning that the agent repeated shows how often it happened; one that came once shows no number."""
    page.go("log")
    texts = page.driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        const event = { seq: 1, ts: '2026-01-01T00:00:00Z', level: 'warning', event: 'job.duplicate', path: '/a' };
        import('/assets/log.js').then(({ eventText }) =>
            done([{}, { repeats: 10 }, { repeats: 1999 }].map((more) => eventText({ ...event, ...more }).textContent.trim())),
            (error) => done(String(error)))""")
    assert texts == [f"warning job.duplicate {number}/a" for number in ("", "×11 ", "×2,000 ")], texts


def faulty(page, station):
    """An error in the file appears with its place, and with the line and a caret below it."""
    station.settings["limits"]["queue_warning"] = "many"
    station.write()
    lines = station.file.read_text().splitlines()
    number = next(index for index, line in enumerate(lines) if "queue_warning" in line)
    column = lines[number].index('"many"')
    confirm(page, "Reload")
    page.shows("not applied")
    page.shows(f"{station.file}:{number + 1}:{column + 1}: ", within="main [role=alert]")
    excerpt = page.run("return document.querySelector('main [role=alert] pre')?.textContent ?? ''").split("\n")
    at = next(index for index, line in enumerate(excerpt) if '"many"' in line)
    assert excerpt[at + 1].index("^") == excerpt[at].index('"many"'), excerpt
    page.audit()
    page.picture("reload-refused")
    assert station.get("status")["running"], "it stopped"


def configuration(page, station):
    """The configuration appears without its secrets; a reload shows the changes or the errors."""
    page.go("config")
    page.shows("queue_warning", within="pre")
    assert TOKEN not in page.text(), "the page shows a secret"
    page.shows("***", within="pre")
    station.settings["limits"]["queue_warning"] = 30
    station.write()
    confirm(page, "Reload")
    page.shows("limits.queue_warning")
    page.picture("reload")
    faulty(page, station)
    station.settings["limits"]["queue_warning"] = 40
    station.write()
    confirm(page, "Reload")
    page.shows("limits.queue_warning")
    assert not page.find("main [role=alert]"), "the error is still told when it is mended"
    page.choose("#log-level", "debug")
    until(lambda: station.get("log/level")["level"] == "debug", what="the level is changed")
    page.choose("#log-level", "info")
    until(lambda: station.get("log/level")["level"] == "info", what="the level is changed back")


def change(page, station):
    """A destination is added by its form, applied and undone; a mistake is shown with its line, and nothing is written."""
    page.go("config")
    before = station.file.read_text()
    page.press("Add a destination…")
    page.shows("New destination", "More settings")
    page.type("#change-name", "copy")
    page.type("#change-path", str(station.library / "copy"))
    page.press("Check")
    page.shows("destinations.copy", within=".outcome")
    page.shows("The files that are there")
    assert TOKEN not in page.text(), "the comparison shows a secret"
    page.audit()
    page.picture("change")
    assert station.file.read_text() == before, "a try has written the file"
    page.press("Apply")
    page.shows("applied", "destinations.copy")
    until(lambda: any(place["name"] == "copy" for place in station.get("status")["destinations"]), what="the destination is there")
    page.press("Undo the last change…")
    page.shows("destinations.copy", within=".outcome")
    page.press("Apply")
    until(lambda: station.file.read_text() == before, what="the file is as it was")
    until(lambda: not page.find(".outcome"), what="the page has its answer")
    page.press("Add a route…")
    page.shows("New route")
    page.type("#change-name", "wrong")
    page.type("#change-to", "nowhere")
    page.press("Check")
    page.shows("nowhere", "Correct this first", within=".outcome")
    page.audit()
    page.press("Cancel")
    page.shows("Set up")
    assert station.file.read_text() == before, "a mistake was written"


# The picture of the topic below, as two decoders read it.
TOPIC = "https://ntfy.sh/inlet-abcdef0123456789"
PICTURE = "f79da5f799a84b53e094c7f3138dcdf2a0cb9fbbe6749acae04df75f6199bcf1"


def phone(page, station):
    """Who may do everything gets the address that a phone subscribes to, as a picture; a reader gets nothing of it."""
    station.settings["notify"] = [{"ntfy": TOPIC, "on": ["volume_done"]}]
    station.write()
    page.go("config")
    confirm(page, "Reload")
    page.shows("ntfy", "volume_done")
    assert TOPIC not in page.text(), "the page shows the address unasked"
    page.press("Subscribe a phone…")
    page.shows(TOPIC, within="dialog")
    drawn = page.run("return document.querySelector('dialog svg.qr path + path').getAttribute('d')")
    assert hashlib.sha256(drawn.encode()).hexdigest() == PICTURE, "the picture is another one"
    page.audit()
    page.picture("phone")
    page.press("Close", "dialog")
    refused = page.run("""return fetch('/api/v1/receivers', { credentials: 'omit',
        headers: { Authorization: 'Bearer ' + arguments[0] } })
        .then(async (answer) => [answer.status, await answer.text()])""", READER)
    assert refused[0] == 403 and TOPIC not in refused[1], refused


CHECKS = [
    (check, {story: r"status of 404", phone: r"status of 403"}.get(check))
    for check in (live_update, search, story, one_action, many, pause, limit, roots, tester, log, repeats, configuration,
                  change, phone)
]
