"""Checks of the fleet's view: shares, agents, orders, search, banners, the keyboard, and text of other agents."""

from selenium.webdriver.common.keys import Keys

from station import HOSTILE, READER, TOKEN, FleetStation, until

SHARES = "section[aria-label=Shares]"
AGENTS, SEARCH = "section[aria-label=Agents]", "section[aria-label='Which machine has my file?']"


def no_fleet(page, station):
    """Without a fleet there is no view of it: no link, no key, and its address says what to set."""
    page.read(station.url + "/#/")
    assert "Fleet" not in page.texts("#nav a"), page.texts("#nav a")
    page.keys("gt")
    page.shows("Overview", within="h1")
    page.run("location.hash = '#/fleet'")
    # In the words of the refusal: it has come.
    page.shows("this agent is in no fleet", "add 'fleet:' to its configuration")
    page.go("")


def agents(page, station):
    """One row an agent, with its state in words, the age of its report, queue, rate and problems; the other's name is text."""
    page.open(station.url + "/")
    page.log_in(TOKEN)
    page.shows("live", within="#connection")
    page.press_link("Fleet", "#nav")
    page.shows("Fleet", within="h1")
    page.shows("station-1 (this agent)", FleetStation.OTHER, within=AGENTS, seconds=20)
    until(lambda: page.text(AGENTS).count("well") == 2, 40, "both are well", words=lambda: page.text(AGENTS))
    page.shows("0 waiting", "ago", "none", within=AGENTS, seconds=40)
    assert not page.find("main img"), "a name became markup"
    assert not page.find(f"{AGENTS} a"), "text of another agent is a link"
    for scheme in ("light", "dark"):
        page.emulate(scheme)
        page.audit(scheme)
    page.emulate(None)
    page.picture("fleet")


def shares(page, station):
    """A share has its lister and its members; without its marker the agents say so, and nobody lists it."""
    until(lambda: (share := station.media()) and share["is_held"] and len(share["members"]) == 2, 40, "both watch the share")
    page.go("fleet")
    page.shows("media", "station-1", FleetStation.OTHER, "none", str(station.share), within=SHARES, seconds=20)
    assert not page.find(f"{SHARES} img, {SHARES} a"), "text of another agent became markup or a link"
    page.audit("shares")
    page.picture("fleet-shares")
    marker = station.share / ".inlet" / "place"
    text = marker.read_bytes()
    marker.unlink()
    try:
        page.shows("nobody", "station-1:", within=SHARES, seconds=40)
        page.go("roots")
        page.shows("paused", "media", within="main", seconds=20)
        assert "Resume" not in page.text("main"), "a button that cannot help"
    finally:
        marker.write_bytes(text)
    until(lambda: station.media()["is_held"], 40, "the share is listed again")
    station.ends_shared("shared.mov")


def problems(page, station):
    """A problem of another agent is in its row, in words; the details of each open with Enter."""
    station.other.put("blocked/lost.mov")
    station.other.ends("lost.mov", "failed", 60)
    page.go("fleet")
    page.shows("1 file failed", within=AGENTS, seconds=60)
    page.keys("j")
    until(lambda: page.run("return document.activeElement.tagName") == "SUMMARY", what="the first agent has the focus")
    page.keys(Keys.ENTER)
    until(lambda: page.find(f"{AGENTS} details[open]"), what="its details are open")
    page.shows("Version", "Last seen", within=f"{AGENTS} details[open]")
    page.audit("details")
    page.keys(Keys.ENTER)


def search(page, station):
    """It says which machine has a file and under which key, also of hostile and of equal names."""
    for name in HOSTILE[:4]:
        station.other.put(name)
    for one in (station, station.other):
        one.put("equal.mov", one.base.name.encode() * 9)
        one.ends("equal.mov", "delivered", 60)
    until(lambda: len(station.get("fleet/search?q=equal.mov")) == 2, 60, "both receipts")
    keys = {found["key"] for found in station.get("fleet/search?q=equal.mov")}
    assert len(keys) == 2, f"two files under {keys}"
    page.go("fleet")
    page.keys("/")
    until(lambda: page.run("return document.activeElement.id") == "q", what="the search has the focus")
    page.keys("equal.mov")
    until(lambda: "q=equal.mov" in page.driver.current_url, what="the search is in the address")
    page.shows("2 receipts", "station-1", FleetStation.OTHER, *keys, within=SEARCH, seconds=20)
    page.audit("search")
    page.picture("fleet-search")
    page.go("fleet?q=" + "%3Cimg")
    page.shows("<img src=x onerror=alert(1)>.txt", within=SEARCH, seconds=30)
    assert not page.find(f"{SEARCH} img, {SEARCH} table a"), "text of another agent became markup or a link"
    page.go("fleet?q=nothing-of-this-name")
    page.shows("No receipts match", within=SEARCH)


def orders(page, station):
    """With an administrator's address the page orders another agent, and asks before it stops something."""
    def is_draining(status):
        return status["fleet"]["is_draining"]

    def is_paused(status):
        return status["destinations"][0]["state"] == "paused"

    row = f"{AGENTS} tbody tr:first-child"
    page.go("fleet")
    page.shows(FleetStation.OTHER, within=row, seconds=20)
    page.run("arguments[0].click()", page.one(f"{row} summary"))
    for order, back, holds in (("Drain", "Undrain", is_draining), ("Pause", "Resume", is_paused)):
        page.press(f"{order}…", row)
        page.shows(FleetStation.OTHER, within="dialog")
        page.audit(order)
        page.press(order, "dialog")
        until(lambda: holds(station.other.get("status")), 30, f"the effect of {order}")
        page.press(back, row)
        until(lambda: not holds(station.other.get("status")), 30, f"the effect of {back}")
    assert not page.find(f"{AGENTS} img, dialog img"), "a name became markup"


def phone(page, station):
    """On a phone the view does not scroll sideways."""
    page.phone(True)
    try:
        page.read(f"{station.url}/#/fleet?q=equal.mov")
        page.shows("2 receipts", FleetStation.OTHER)
        wide = page.run("return document.documentElement.scrollWidth")
        assert wide <= 360, f"the view is {wide} wide on a phone"
        page.audit("phone")
    finally:
        page.phone(False)


def away(page, station):
    """Without PostgreSQL a banner says since when, what goes on and the remedy, on every view; it goes by itself."""
    page.go("")
    station.cluster.stop()
    try:
        page.shows("PostgreSQL of the fleet is away since", "Local folders go on", within="#banners", seconds=40)
        page.shows("is away since", within=".needs", seconds=20)
        page.audit("away")
        page.picture("fleet-away")
        page.press_link("Show the fleet", "#banners")
        page.shows("PostgreSQL is away", within="main", seconds=20)
        # The file goes on under this agent's tag.
        station.put("alone.mov")
        job = station.ends("alone.mov", "delivered", 60)
        tag = station.get("status")["fleet"]["tag"]
        assert any(tag in (one.get("key") or "") for one in job["deliveries"]), job
    finally:
        station.cluster.start()
    page.hides("PostgreSQL of the fleet", "#banners", seconds=60)


def recovering(page, station):
    """After a restore the banner names the agents that have not reported."""
    station.other.close()
    station.cluster.sql("SELECT inlet.v1_admin_restored('a check of the browser')")
    page.shows("The fleet is recovering", FleetStation.OTHER, within="#banners", seconds=40)
    assert not page.find("#banners img"), "a name became markup"
    page.audit("recovering")
    page.picture("fleet-recovering")
    station.other.start()
    page.hides("The fleet is recovering", "#banners", seconds=60)


def reader(page, station):
    """Read-only access suffices for the view and for its search."""
    page.press("Log out", ".tools")
    page.one("#secret")
    page.log_in(READER)
    page.shows("live", within="#connection")
    page.go("fleet?q=equal.mov")
    page.shows("Read-only access", "station-1 (this agent)", "2 receipts", seconds=20)


CHECKS = [
    (agents, r"status of 401"), *((check, None) for check in (shares, problems, search, orders, phone, away, recovering)),
    (reader, r"status of 401"),
]
