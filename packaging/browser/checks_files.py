"""Checks of the lists of files: what needs a person, answers in bulk, ignored files, a file's timeline."""

from selenium.webdriver.common.keys import Keys

from station import until


def choose_all(page):
    page.run("arguments[0].click()", page.one("#all"))
    # The page draws once for all that has changed.
    page.shows(" selected", within=".bar")


def buttons(page):
    """The visible buttons of the bar above the list."""
    return [text for text in page.texts(".bar button") if text]


def twins(station, *names):
    """Drops files of one content, of which the first is sent."""
    content = b"the same in all of them: " + names[0].encode()
    for number, name in enumerate(names):
        station.put(f"twins/{name}", content)
        station.ends(name, "duplicate" if number else "delivered")


def tabs(page, station):
    """Each list has a link with its number, and says which one is open."""
    twins(station, "tab1.txt", "tab2.txt")
    page.go("files")
    texts = page.texts(".tabs a")
    assert [text.split("\n")[0].rstrip("0123456789,. ") for text in texts] == [
        "All", "Needs you", "Duplicates", "Rejected", "Ignored"], texts
    page.run("[...document.querySelectorAll('.tabs a')].find((node) => node.innerText.startsWith('Duplicates')).click()")
    page.shows("Already at library as twins/tab1.txt")
    # The rows of before stay until the others are read.
    until(lambda: (rows := page.texts("tbody tr")) and all("duplicate" in row for row in rows), what="only duplicates")
    assert page.run("return document.querySelector('.tabs [aria-current=page]').innerText").startswith("Duplicates")
    page.audit("duplicates")
    page.picture("duplicates")


def no_retry(page, station):
    """A rejected file has a reason, answers, and no Retry: that could not work."""
    page.go("files?state=rejected&unanswered=1")
    page.shows("setup.exe", "exe")
    choose_all(page)
    words = buttons(page)
    assert any(word.startswith("Leave in place 1") for word in words), words
    assert any(word.startswith("Move aside 1") for word in words), words
    assert not any(word.startswith(("Retry", "Remove", "Cancel")) for word in words), words
    page.go(f"files/{station.job('setup.exe')['job']}")
    page.shows("rejected", within=".head")
    words = page.texts(".head button")
    assert "Leave in place…" in words and "Retry…" not in words and "Cancel…" not in words, words


def answers(page, station):
    """Answers in bulk say their number first, and leave out what they do not concern."""
    twins(station, "bulk1.txt", "bulk2.txt", "bulk3.txt", "bulk4.txt")
    page.go("files?q=bulk")
    until(lambda: len(page.find("tbody tr")) == 4, what="four files")
    choose_all(page)
    page.shows("4 files selected")
    words = buttons(page)
    assert "Move aside 3…" in words and "Remove with proof 3…" in words and "Forget 4…" in words, words
    page.press("Remove with proof 3…")
    page.shows("Remove 3 files, ", "with proof?", "bulk2.txt", within="dialog")
    assert "bulk1.txt" not in page.text("dialog"), "the first one is no duplicate"
    page.picture("answer")
    page.press("Cancel", "dialog")
    assert (station.drop / "twins/bulk2.txt").exists(), "it was done without a yes"
    page.press("Remove with proof 3…")
    page.press("Remove with proof", "dialog")
    page.shows("3 files done", within="#toast")
    until(lambda: not any((station.drop / f"twins/bulk{number}.txt").exists() for number in (2, 3, 4)),
          what="the sources are removed")
    assert (station.drop / "twins/bulk1.txt").exists() and (station.library / "twins/bulk1.txt").exists()
    until(lambda: station.job("bulk2.txt")["disposition"].startswith("deleted: library has it"), what="the proof is kept")


def leave(page, station):
    """What may stay is no open question any more, and stays in the full list."""
    twins(station, "stay1.txt", "stay2.txt")
    page.go("files?state=duplicate&unanswered=1&q=stay2")
    until(lambda: len(page.find("tbody tr")) == 1, what="one file")
    choose_all(page)
    page.press("Leave in place 1…")
    page.shows("Leave 1 file, ", "in place?", within="dialog")
    page.press("Leave in place", "dialog")
    page.shows("No matching files")
    page.run("arguments[0].click()", page.one("#unanswered"))
    until(lambda: any("stay2.txt" in row for row in page.texts("tbody tr")), what="it is in the full list")
    assert (station.drop / "twins/stay2.txt").exists()


def by_time(page, station):
    """The time filters are in the address, in local time on the page."""
    page.go("files")
    page.run("""const field = document.getElementById('since'); field.value = '2020-01-02T03:04';
        field.dispatchEvent(new Event('change', { bubbles: true }))""")
    until(lambda: "since=20" in page.driver.current_url, what="the address has the time")
    until(lambda: page.find("tbody tr"), what="files since then")
    assert page.run("return document.getElementById('since').value") == "2020-01-02T03:04"
    page.go("files?until=2020-01-01T00:00:00.000Z")
    page.shows("No matching files")


def ignored(page, station):
    """Ignored files are listed with their reasons."""
    station.put("half.part", b"x")
    page.go("files?ignored=1")
    page.shows("half.part", "built-in ignore list", seconds=20)
    page.audit("ignored")
    page.picture("ignored")


def timeline(page, station):
    """A file's page tells what happened in order: written, admitted, tried, delivered with a proof, finished."""
    job = station.ends("harbour.jpg", "delivered")["job"]
    page.go(f"files/{job}")
    page.shows("What happened")
    steps = page.texts(".timeline strong")
    places = [next(index for index, step in enumerate(steps) if step.startswith(word)) for word in (
        "Written last", "Complete, and admitted", "Attempt 1 to library", "Delivered to library", "Source",
        "Receipt written")]
    assert places == sorted(places), steps
    page.shows("proved by", within=".timeline")
    assert page.button("Save receipt"), "the receipt cannot be saved"
    page.audit("story")


def by_keyboard(page, station):
    """A list is opened, and an answer is given up, without a mouse."""
    page.go("files?state=rejected&unanswered=1")
    page.one("tbody tr")
    page.run("document.querySelector('.tabs a[aria-current]').focus()")
    page.keys(Keys.TAB)
    assert page.run("return document.activeElement.closest('.tabs') !== null"), "the next link does not get the focus"
    page.run("document.querySelector('#all').focus()")
    page.keys(Keys.SPACE)
    until(lambda: any(word.startswith("Leave in place") for word in buttons(page)), what="the orders appear")
    page.run("[...document.querySelectorAll('.bar button')].find((n) => n.innerText.startsWith('Leave')).focus()")
    page.keys(Keys.ENTER)
    page.shows("in place?", within="dialog")

    def is_gone():
        # A browser that is busy opening the dialog hears no key yet.
        page.keys(Keys.ESCAPE)
        return not page.run("return document.getElementById('dialog').open")

    until(is_gone, what="the question is gone")
    assert station.job("setup.exe")["unanswered"], "it was done without a yes"


def on_a_phone(page, station):
    """The lists fit a phone."""
    page.phone(True)
    try:
        for view in ("files", "files?state=duplicate", "files?ignored=1", f"files/{station.job('harbour.jpg')['job']}"):
            page.go(view)
            until(lambda: "Loading…" not in page.text() and "Looking…" not in page.text(), what=f"{view} is read")
            wide = page.run("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view} is {wide} px too wide"
            page.picture("phone-" + view.partition("?")[0].replace("/", "-"))
    finally:
        page.phone(False)


CHECKS = [(check, None) for check in (
    tabs, no_retry, answers, leave, by_time, ignored, timeline, by_keyboard, on_a_phone)]
