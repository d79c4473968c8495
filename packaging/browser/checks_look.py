"""Checks of the content and the form of the pages."""

from selenium.webdriver.common.keys import Keys

from page import VIEWS
from station import HOSTILE, until

def says_health(page, health):
    """Whether the overview shows exactly the agent's own report of its health."""
    shown = page.run("""return [...document.querySelectorAll('.needs li')].map((node) => node.innerText)""")
    wanted = health["findings"]
    return (page.text(".sentence") == health["sentence"] and len(shown) == len(wanted)
            and all(found["text"] in line and found["remedy"] in line for found, line in zip(wanted, shown))
            and page.driver.title.startswith(f"({health['needing']}) "))


def overview(page, station):
    """The overview shows problems, transfers and their rates, and its sum adds up."""
    page.go("")
    page.shows("away is down", seconds=40)
    page.shows("needs attention", within=".needs")
    until(lambda: says_health(page, station.get("status")["health"]), what="what the agent says of its health")
    page.shows("slow/interview.mov")
    bar = page.one("progress")
    first = float(bar.get_attribute("value"))
    until(lambda: float(page.one("progress").get_attribute("value")) > first, 15, "the bar moves")
    page.shows("KiB/s", "left", within=".progress", seconds=15)
    label = page.one(".graph svg").get_attribute("aria-label")
    assert label.startswith("Rate in the last hour"), label
    status = station.get("status")
    page.shows(f"{status['seen']} files seen")
    assert "add up to" not in page.text(), "the balance does not hold"
    assert page.driver.title.startswith("("), page.driver.title
    page.picture("overview")


def hostile_names(page, station):
    """Names that look like markup are text on every page with names."""
    for view in ("files", "log"):
        page.go(view)
        page.shows("img src=x onerror")
        assert not page.find("main img, main script"), f"a name became markup in {view}"
    page.go("files")
    page.one("a.job")
    names = page.run("return [...document.querySelectorAll('a.job')].map((node) => node.textContent)")
    for part in ("<img src=x onerror=alert(1)>.txt", "gpj.exe.txt", "lines.txt", "<script>alert(2)", "x" * 200):
        assert any(part in name for name in names), f"{part} is not in the list: {names}"
    assert len([name for name in names if "\u202e" in name]) == 0, "a name turns the text after it around"
    assert len(HOSTILE) <= len(names)


def every_page(page, station):
    """Every page opens by its address, has its title, and passes the accessibility audit."""
    job = station.job("harbour.jpg")["job"]
    with open(station.drop / "being written.mov", "wb") as held:
        held.write(b"x")
        held.flush()
        for view in [*VIEWS, f"files/{job}"]:
            page.read(f"{station.url}/#/{view}")
            page.shows(VIEWS.get(view, ("", f"Job {job}"))[1], within="h1")
            for scheme in ("light", "dark"):
                page.emulate(scheme)
                page.audit(f"{view or 'overview'}, {scheme}")
            page.emulate(None)
            page.picture("story" if view not in VIEWS else view or "overview-again")


def phone(page, station):
    """On a phone, 360 pixels wide, no page scrolls sideways."""
    page.phone(True)
    try:
        for view in [*VIEWS, f"files/{station.job('xxxx')['job']}"]:
            page.read(f"{station.url}/#/{view}")
            wide = page.run("return document.documentElement.scrollWidth")
            assert wide <= 360, f"{view or 'overview'} is {wide} wide"
            page.audit(view)
            if page.pictures:
                page.driver.save_screenshot(str(page.pictures / f"phone-{view.replace('/', '-') or 'overview'}.png"))
    finally:
        page.phone(False)


def themes(page, station):
    """The theme follows the system until a person chooses one."""
    def back():
        return page.run("return getComputedStyle(document.body).backgroundColor")

    page.go("")
    page.emulate("light")
    light = back()
    page.emulate("dark")
    dark = back()
    assert light != dark, f"both are {light}"
    page.picture("dark")
    page.press("System", ".tools")
    assert back() == light, "Light is not light"
    page.open(station.url + "/")
    page.shows("Light", within=".tools")
    assert back() == light, "the choice is forgotten"
    page.press("Light", ".tools")
    page.press("Dark", ".tools")
    assert back() == dark, "System does not follow the system"
    page.emulate(None)


def keyboard(page, station):
    """With the keyboard alone: to the files, through the list, a story, back, search, help."""
    page.read(station.url + "/")
    page.keys(Keys.TAB)
    focus = "return document.activeElement"
    assert "Skip" in page.run(focus).text, "the first stop is not the skip link"
    page.keys(Keys.ENTER)
    assert page.run(focus).get_attribute("id") == "main", "the skip link leads elsewhere"
    page.keys("gf")
    page.shows("Files", within="h1")
    page.one("a.job")
    page.keys("j")
    first = page.run(focus).text
    page.keys(Keys.ARROW_DOWN)
    second = page.run(focus).text
    assert first and second and first != second, f"j and ↓ do not move: {first}, {second}"
    page.keys("k")
    assert page.run(focus).text == first, "k does not move back"
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is not seen"
    page.keys("x")
    page.shows("1 file selected")
    page.keys("x", Keys.ENTER)
    page.shows("Job ", within="h1")
    page.keys(Keys.ESCAPE)
    page.shows("Files", within="h1")
    page.one("#q")
    page.keys("/")
    assert page.run(focus).get_attribute("id") == "q", "/ does not search"
    page.keys(Keys.ESCAPE, "?")
    page.shows("Keyboard shortcuts", within="dialog")
    page.picture("keys")

    def is_closed():
        # A browser that is busy opening the dialog hears no key yet.
        page.keys(Keys.ESCAPE)
        return not page.find("dialog[open]")

    until(is_closed, what="Esc closes the help")
    for key, title in VIEWS.values():
        page.keys("g" + key)
        page.shows(title, within="h1")


CHECKS = [(check, None) for check in (overview, hostile_names, every_page, phone, themes, keyboard)]
