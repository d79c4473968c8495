"""Checks of the first screen: four answers, a button for each problem, and folders that are quiet."""

from selenium.webdriver.common.keys import Keys

from station import Agent, until

QUESTIONS = ["Is everything safe?", "What needs you?", "What came last?", "What waits?"]


class FirstStation(Agent):
    """An agent that expects a file every few seconds, and has a route on which every file fails."""

    EXPECT = 15

    def __init__(self, base):
        super().__init__(base, False)
        # Where the route 'blocked' needs a folder.
        (self.library / "a-file").write_text("in the way\n")
        self.settings |= {
            "watch": {"settle": "200ms", "expect": f"{self.EXPECT}s"},
            "routes": [
                {
                    "name": "blocked", "match": {"path": "blocked/**"}, "to": "library", "key": "a-file/{name}",
                    "retry": {"attempts": 1},
                },
                {"name": "rest", "to": "library", "key": "{dir}/{name}"},
            ],
        }

    def root(self):
        return self.get("status")["roots"][0]


def four_answers(page, station):
    """The first screen is one sentence and four answers, each with its heading, also before any file."""
    page.read(station.url + "/#/")
    assert page.texts(".answers h2") == QUESTIONS, page.texts(".answers h2")
    page.shows("Yes: every file that came is where it belongs.", within=".safe", seconds=15)
    page.shows("No file yet", within=".last")
    page.shows(str(station.drop), within=".waits")
    # A browser that starts slowly finds the folder quiet already.
    until(lambda: "no file yet" in page.text(".waits") or "quiet since" in page.text(".waits"), what="it tells of the folder")
    page.audit("the first screen of a new agent")
    page.picture("first-empty")


def quiet_folder(page, station):
    """A folder from which nothing came for so long is quiet: in words and colour, until a file comes."""
    page.go("")
    page.shows("quiet since", within=".waits", seconds=station.EXPECT + 20)
    until(lambda: station.root().get("quiet_since"), what="the agent says so, too")
    assert page.find(".waits .badge.waiting"), "it is not in colour"
    page.shows("is quiet since", f"a file is expected every {station.EXPECT}s", within=".needs")
    page.audit("a quiet folder")
    page.picture("first-quiet")
    page.go("roots")
    page.shows("quiet", f"a file every {station.EXPECT}s", within=".card")
    page.go("")
    station.put("photos/comes again.jpg", b"\xff\xd8\xff" + bytes(4000))
    page.hides("quiet since", ".waits", seconds=station.EXPECT - 1)
    page.shows("last file", within=".waits")


def last_file(page, station):
    """The newest file, its folder and its time are there, and outlive a restart of the agent; so does 'Latest'."""
    station.put("photos/newest.jpg", b"\xff\xd8\xff" + bytes(3000))
    station.ends("newest.jpg", "delivered")
    page.go("")
    page.shows("newest.jpg", str(station.drop / "photos"), "ago", within=".last")
    station.agent.stop()
    station.start()
    page.read(station.url + "/#/")
    page.shows("newest.jpg", "ago", within=".last")
    page.shows("newest.jpg", "delivered", within=".latest")
    page.picture("first-restarted")
    page.press_link("newest.jpg", ".last")
    page.shows("Job ", within="h1")
    page.shows("newest.jpg", within=".head")


def needs_button(page, station):
    """A problem has a button that acts, after a question, and a link to its files."""
    station.put("blocked/lost.mov", bytes(5000))
    station.ends("lost.mov", "failed")
    page.go("")
    page.shows("1 file failed", within=".needs")
    page.shows("No: 1 file is not where it belongs.", within=".safe")
    (station.library / "a-file").unlink()
    page.press("Retry…", ".needs")
    page.shows("Retry 1 file", "lost.mov", within="dialog")
    page.picture("first-retry")
    page.press("Cancel", "dialog")
    assert station.job("lost.mov")["state"] == "failed", "it was sent again without a yes"
    page.press("Retry…", ".needs")
    page.press("Retry", "dialog")
    page.shows("1 file done", within="#toast")
    station.ends("lost.mov", "delivered")
    page.hides("1 file failed", ".needs")
    page.shows("lost.mov", within=".last")
    # The same by a pause: the button ends it.
    status = page.run("""return fetch('/api/v1/pause?destination=library', { method: 'POST', body: '{}',
        headers: { 'Content-Type': 'application/json', 'X-Inlet': '1' } }).then((answer) => answer.status)""")
    assert status == 200, status
    page.shows("library is paused", within=".needs")
    page.press("Resume", ".needs")
    page.hides("library is paused", ".needs")


def first_by_keyboard(page, station):
    """With the keyboard alone: to the first link of the answers, to a button, into its question and back."""
    status = page.run("""return fetch('/api/v1/pause?destination=library', { method: 'POST', body: '{}',
        headers: { 'Content-Type': 'application/json', 'X-Inlet': '1' } }).then((answer) => answer.status)""")
    assert status == 200, status
    page.read(station.url + "/#/")
    page.shows("library is paused", within=".needs")
    page.keys(Keys.TAB, Keys.ENTER)
    inside = "return document.activeElement.closest('.needs')?.querySelector('h2')?.innerText ?? ''"
    for _ in range(4):
        page.keys(Keys.TAB)
        if page.run(inside):
            break
    assert page.run(inside) == "What needs you?", "Tab does not lead from the skip link to the answers"
    for _ in range(12):
        if page.run("return document.activeElement.innerText") == "Resume":
            break
        page.keys(Keys.TAB)
    assert page.run("return document.activeElement.innerText") == "Resume", "Tab does not reach the button"
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is not seen"
    page.keys(Keys.ENTER)
    page.hides("library is paused", ".needs")


def first_on_a_phone(page, station):
    """On a phone the answers stand below each other, and nothing scrolls sideways."""
    page.phone(True)
    try:
        page.read(station.url + "/#/")
        wide = page.run("return document.documentElement.scrollWidth")
        assert wide <= 360, f"it is {wide} wide"
        lefts = page.run("return [...document.querySelectorAll('.answers > div')].map((node) => node.offsetLeft)")
        assert len(lefts) == 4 and len(set(lefts)) == 1, f"they stand beside each other: {lefts}"
        for scheme in ("light", "dark"):
            page.emulate(scheme)
            page.audit(f"the first screen on a phone, {scheme}")
        page.emulate(None)
    finally:
        page.phone(False)


def home_for_widgets(page, station):
    """What home pages ask for has every key, and agrees with the first screen."""
    home = station.get("home")
    assert sorted(home) == sorted([
        "verdict", "sentence", "needs_you", "last", "next", "quiet_since", "failed_30d", "ok_30d", "cards"]), home
    assert home["last"]["file"].endswith("lost.mov") and home["ok_30d"] == 3 and home["failed_30d"] == 0, home


CHECKS = [
    (check, {last_file: r"net::ERR_"}.get(check))
    for check in (four_answers, quiet_folder, last_file, needs_button, home_for_widgets, first_by_keyboard, first_on_a_phone)
]
