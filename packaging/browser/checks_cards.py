"""Checks of the cards' view and of the kiosk, with real disks in files."""

import time
from contextlib import closing
from urllib.parse import quote

from page import Page
from station import KIOSK, READER, TOKEN, until

MIB = 1 << 20
# The browser's ears, and a way to hold its clock and its answers.
SENSES = """
window.tones = [];
window.AudioContext = class {
    state = 'suspended'; currentTime = 0; destination = {};
    async resume() { if (navigator.userActivation.hasBeenActive) this.state = 'running'; }
    createOscillator() {
        const frequency = {};
        return { frequency, connect: (next) => next, start: () => window.tones.push(frequency.value), stop() {} };
    }
    createGain() {
        const gain = { setValueAtTime() {}, linearRampToValueAtTime() {} };
        return { gain, connect: (next) => next };
    }
};
const [ask, now] = [window.fetch, Date.now];
window.later = 0;
Date.now = () => now() + window.later;
window.fetch = async (url, options) => {
    if (!String(url).endsWith('/api/v1/cards')) return ask(url, options);
    const answer = window.held ? window.held.clone() : await ask(url, options);
    if (answer.ok) window.last = answer.clone();
    return answer;
};
"""
SAFE_TONES, ALARM_TONES = [660, 880], [440, 330, 440, 330]


def tile(label, place="main"):
    """A selector is not enough: names are text."""
    return f"""[...document.querySelectorAll('{place} li.reader, {place} li.tile')]
        .find((node) => node.querySelector('h2').innerText.includes({label!r}))"""


def says(page, label):
    return page.run(f"return ({tile(label)})?.innerText ?? ''")


def shows(page, label, *texts, seconds=15):
    for text in texts:
        until(lambda: text in says(page, label), seconds, f"'{text}' in the tile of {label}", words=lambda: says(page, label)[:1500])


def tone(page, label):
    return page.run(f"return ({tile(label)})?.querySelector('.verdict')?.className ?? ''").removeprefix("verdict ")


def press(page, label, text):
    script = f"""return [...({tile(label)})?.querySelectorAll('button, summary') ?? []]
        .find((node) => node.innerText.trim() === arguments[0] && node.checkVisibility() && !node.disabled)"""
    page.run("arguments[0].click()", until(lambda: page.run(script, text), 10, f"'{text}' in the tile of {label}"))


def buttons(page, label):
    return page.run(f"return [...({tile(label)}).querySelectorAll('button')].map((node) => node.innerText)")


def kiosk_page(page, station, token=KIOSK):
    other = Page(page.pictures)
    other.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SENSES})
    other.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    other.open(f"{station.url}/cards?kiosk#token={quote(token, safe='')}")
    return other


def picture(page, name):
    """Of the kiosk's screen, as large as it is."""
    if page.pictures:
        time.sleep(0.4)
        page.driver.save_screenshot(str(page.pictures / f"{name}.png"))


def red(page, seconds):
    """Waits until the kiosk warns, and shows no verdict."""
    until(lambda: "trust nothing here" in page.text(), seconds, "the warning", words=page.text)
    assert page.run("return document.body.className") == "lost"
    assert not page.find(".tile.good, .tile.waiting, .tile.bad, .verdict.good"), "a tile kept its colour"
    assert "SAFE TO REMOVE" not in page.text(), page.text()


def trusted(page, seconds=15):
    until(lambda: page.find(".tile.good") and not page.find(".lost"), seconds, "the kiosk is back", words=page.text)


def no_card(page, station):
    """Without a card, the view and the kiosk show that no card is in a reader, and where Inlet looks for cards."""
    page.open(station.url + "/")
    page.log_in(TOKEN)
    page.shows("live", within="#connection")
    page.go("cards")
    page.shows("No card is in a reader.", f"{station.readers}/*/DCIM", "No card has been in a reader yet")
    page.audit("no card")
    page.picture("cards-none")
    with closing(kiosk_page(page, station)) as kiosk:
        kiosk.shows("No card is in a reader")
        assert kiosk.driver.current_url == station.url + "/cards?kiosk", kiosk.driver.current_url
        assert kiosk.run("return document.cookie") == "", "a script can read the session"
        kiosk.audit("kiosk without a card")


def copying(page, station):
    """A card is NOT YET while it is copied, with its progress, and then SAFE TO REMOVE; the kiosk's sound says so."""
    card = station.card("COPYING", {"DCIM/100TEST/CLIP1.MP4": bytes(20 * MIB), "DCIM/100TEST/CLIP2.MP4": bytes(5000)})
    with closing(kiosk_page(page, station)) as kiosk:
        kiosk.button("Tap to switch the sound on", within="header").click()
        kiosk.hides("Tap to switch", "header")
        card.insert()
        shows(page, "COPYING", "NOT YET")
        assert tone(page, "COPYING") == "waiting"
        until(lambda: page.run(f"return ({tile('COPYING')})?.querySelector('progress')?.value > 0"), 20, "the bar moves")
        shows(page, "COPYING", "to copy", "only read it")
        page.picture("cards-copying")
        shows(kiosk, "COPYING", "NOT YET")
        picture(kiosk, "kiosk-copying")
        shows(page, "COPYING", "SAFE TO REMOVE", seconds=40)
        assert tone(page, "COPYING") == "good"
        shows(kiosk, "COPYING", "SAFE TO REMOVE")
        heard = until(lambda: kiosk.run("return window.tones"), 5, "a sound")
        assert heard == SAFE_TONES, heard
        looks(kiosk)
        picture(kiosk, "kiosk-safe")
    for scheme in ("light", "dark"):
        page.emulate(scheme)
        page.audit(f"a safe card, {scheme}")
    page.emulate(None)
    page.picture("cards-safe")


def looks(kiosk):
    """From three metres: large, with words, colour and shape; and it fits the screen."""
    size = kiosk.run("return parseFloat(getComputedStyle(document.querySelector('.headline strong')).fontSize) / innerWidth")
    assert size >= 0.04, f"the verdict is {size:.3f} of the width"
    assert len(kiosk.find(".tile .shape")) == len(kiosk.find(".tile")), "a tile has no shape"
    wide, high = kiosk.run("return [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]")
    assert wide <= 0 and high <= 0, f"{wide} too wide, {high} too high"
    kiosk.audit("kiosk")


def labels(page, station):
    """A person names the card as its tape says; the next roll is suggested, and a gap is shown."""
    def name(label, roll):
        form = f"[id^=roll-]"
        field = until(lambda: page.run(f"return ({tile(label)})?.querySelector('{form}')"), 10, "the field of the roll")
        until(field.is_displayed, 5, "the field of the roll is open")
        suggested = field.get_attribute("value")
        page.overwrite(field, roll)
        time.sleep(1.5)
        assert field.get_attribute("value") == roll, "a redraw took away what was typed"
        press(page, label, "Save names")
        shows(page, label, f"{roll} · {label}")
        assert station.told(label)["roll"] == roll
        return suggested

    assert name("COPYING", "A001") == ""
    station.card("SECOND", {"DCIM/100TEST/CLIP1.MP4": b"second"}).insert()
    assert name("SECOND", "A003") == "A002"
    page.shows("none was named A002")
    page.picture("cards-labels")
    page.shows("A003", within="section[aria-label=History]")


def others_left(page, station):
    """Other files on a card make it NOT YET, until a person leaves them."""
    station.card("OTHERS", {"DCIM/100TEST/CLIP1.MP4": b"clip", "notes/read me.txt": b"note"}).insert()
    shows(page, "OTHERS", "NOT YET", "1 other file on it", "problem", seconds=25)
    assert tone(page, "OTHERS") == "bad"
    press(page, "OTHERS", "Other files on it")
    shows(page, "OTHERS", "outside the watched folder: notes")
    assert "Eject" not in buttons(page, "OTHERS"), "a card that is not safe can be ejected"
    page.picture("cards-others")
    press(page, "OTHERS", "Leave them")
    shows(page, "OTHERS", "SAFE TO REMOVE", "they may stay", seconds=25)


def somebody(page, station):
    """Copies that a destination has lost make a card that comes back CALL SOMEBODY; they can be sent again."""
    second = next(card for card in station.cards if card.label == "SECOND")
    second.remove()
    until(lambda: not station.told("SECOND"), what="the card is out")
    for copy in station.library.rglob("SECOND/**/*.MP4"):
        copy.unlink()
    with closing(kiosk_page(page, station)) as kiosk:
        kiosk.button("Tap to switch the sound on", within="header").click()
        kiosk.shows("COPYING")
        second.insert()
        shows(kiosk, "SECOND", "CALL SOMEBODY", "no longer at library", seconds=25)
        heard = until(lambda: kiosk.run("return window.tones"), 5, "a sound")
        assert heard[-4:] == ALARM_TONES, heard
        looks(kiosk)
        picture(kiosk, "kiosk-call-somebody")
        shows(page, "SECOND", "CALL SOMEBODY")
        page.picture("cards-call-somebody")
        press(page, "SECOND", "Send again")
        shows(page, "SECOND", "SAFE TO REMOVE", seconds=25)
        shows(kiosk, "SECOND", "SAFE TO REMOVE")


def pulled(page, station):
    """A card that is pulled too early says how many files are not copied, on both screens."""
    card = station.card("PULLED", {f"DCIM/100TEST/CLIP{number}.MP4": bytes(6 * MIB) for number in range(3)})
    card.insert()
    shows(page, "PULLED", "NOT YET")
    until(lambda: page.run(f"return ({tile('PULLED')})?.querySelector('progress')?.value > 0"), 20, "it is being copied")
    card.pull()
    shows(page, "PULLED", "PULLED", "not copied")
    assert tone(page, "PULLED") == "bad"
    page.picture("cards-pulled")
    card.insert()
    shows(page, "PULLED", "SAFE TO REMOVE", seconds=60)


def unknown(page, station):
    """A disk that no pattern fits is NOT KNOWN HERE, and its hostile name stays text."""
    label = "<img src=x>"
    station.card(label, {"some/thing.txt": b"text", "some/<b>.txt": b"text"}).insert()
    shows(page, label, "NOT KNOWN HERE", "2 files", "no watched folder fits", seconds=25)
    assert not page.find("main img, main b"), "a name became markup"
    with closing(kiosk_page(page, station)) as kiosk:
        shows(kiosk, label, "NOT KNOWN HERE")
        assert not kiosk.find("main img, main b"), "a name became markup"
        looks(kiosk)
        picture(kiosk, "kiosk-many")
    page.audit("many cards")
    page.picture("cards-many")


def eject(page, station):
    """A safe card is ejected by its button, says that it is out, and stays in the history with its list and its report."""
    press(page, "OTHERS", "Eject")
    shows(page, "OTHERS", "OUT", "you can take it", seconds=30)
    assert not any(str(card.point) in open("/proc/mounts").read() for card in station.cards if card.label == "OTHERS")
    history = "section[aria-label=History]"
    page.shows("OTHERS", within=history)
    page.run(f"[...document.querySelectorAll('{history} tr')].find((row) => row.innerText.includes('OTHERS'))"
             ".querySelector('summary').click()")
    page.shows("they may stay", "decided", within=history)
    link = page.run(f"return [...document.querySelectorAll('{history} a')].find((node) => node.innerText.startsWith('Report')).href")
    assert link.startswith(f"{station.url}/api/v1/report/html?card="), link
    page.phone(True)
    try:
        wide = page.run("return document.documentElement.scrollWidth")
        assert wide <= 360, f"the view is {wide} wide on a phone"
        page.audit("phone")
    finally:
        page.phone(False)


def kiosk_rights(page, station):
    """The kiosk's token shows the cards and nothing else; a reader sees the view without its buttons."""
    script = """return fetch('/api/v1/' + arguments[0], { method: arguments[1], body: arguments[1] === 'POST' ? '{}' : undefined,
        headers: { 'Content-Type': 'application/json', 'X-Inlet': '1' } }).then((answer) => answer.status)"""
    with closing(kiosk_page(page, station)) as kiosk:
        kiosk.shows("COPYING")
        for path, method, status in (
            ("cards", "GET", 200), ("status", "GET", 403), ("cards/history", "GET", 403), ("jobs", "GET", 403),
            ("config", "GET", 403), ("log", "GET", 403), ("events", "GET", 403), ("cards/COPYING/eject", "POST", 403),
            ("cards/COPYING/label", "POST", 403), ("pause", "POST", 403),
        ):
            answered = kiosk.run(script, path, method)
            assert answered == status, f"{method} {path}: {answered}"
        kiosk.open(station.url + "/")
        kiosk.shows("Log in", within="h1")
        kiosk.open(station.url + "/cards")
        until(lambda: kiosk.driver.current_url == station.url + "/#/cards", what="the address of the view")
        kiosk.log_in(READER)
        kiosk.shows("Read-only access", "COPYING")
        words = kiosk.texts("main button")
        assert not set(words) & {"Eject", "Leave them", "Send again", "Save names"}, words
    assert KIOSK not in station.agent.log.read_text(), "the token is in the log"
    with closing(kiosk_page(page, station, token="wrong token")) as kiosk:
        kiosk.shows("type the kiosk's token")
        assert not kiosk.find(".tile"), "a wrong token shows cards"
        kiosk.log_in(KIOSK)
        kiosk.shows("COPYING")


def silence(page, station):
    """When the agent stops, the kiosk is red within 10 s and shows no verdict; it recovers by itself, also after a restart."""
    with closing(kiosk_page(page, station)) as kiosk:
        trusted(kiosk)
        assert kiosk.run("window.guard = document.querySelector('.guard'); return getComputedStyle(guard).opacity") == "0"
        until(lambda: not kiosk.run("return window.guard.isConnected"), 20, "each answer puts the guard off")
        covered = kiosk.run("""const guard = document.querySelector('.guard');
            guard.getAnimations()[0].currentTime = 10001;
            return getComputedStyle(guard).opacity""")
        assert covered == "1", "no script, no cover"
        kiosk.run("""new MutationObserver(() => { if (document.body.className === 'lost') window.lostAt ??= Date.now(); })
            .observe(document.body, { attributes: true })""")
        station.stop()
        stopped = time.time()
        try:
            red(kiosk, 30)
            # By the browser's clock: a driver that is busy tells it later.
            waited = kiosk.run("return window.lostAt") / 1000 - stopped
            assert 0 <= waited <= 10, f"red after {waited:.1f} s"
            kiosk.audit("no answer")
            picture(kiosk, "kiosk-no-answer")
            page.shows("trust nothing here", "NOT KNOWN", seconds=30)
        finally:
            station.go_on()
        trusted(kiosk)
        station.kill()
        red(kiosk, 30)
        station.start()
        station.stands("COPYING", "safe")
        trusted(kiosk, 20)


def old_answers(page, station):
    """Answers that stand still or are old, and a device that slept, turn the kiosk red before it paints anything else."""
    with closing(kiosk_page(page, station)) as kiosk:
        trusted(kiosk)
        kiosk.run("window.held = window.last")
        red(kiosk, 30)
        assert "STOOD STILL" in kiosk.text(), kiosk.text()
        kiosk.run("window.held = null")
        trusted(kiosk)
        sleep = """Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
            return document.querySelectorAll('.tile.good').length + document.body.className"""
        assert kiosk.run(sleep, True) == "0lost", "the last picture before the sleep has a verdict"
        kiosk.run("window.later = 3600000; window.fetch = () => new Promise(() => {})")
        assert kiosk.run(sleep, False) == "0lost", "the first picture after the sleep has a verdict"
        red(kiosk, 1)
    with closing(kiosk_page(page, station)) as kiosk:
        trusted(kiosk)
        kiosk.run("window.later = 120000")
        red(kiosk, 20)
        until(lambda: "ANSWER IS OLD" in kiosk.text(), 20, "the two clocks", words=kiosk.text)


LOGGED_OUT = r"status of 401|AudioContext"
CHECKS = [
    (no_card, LOGGED_OUT),
    *((check, None) for check in (copying, labels, others_left, somebody, pulled, unknown, eject, kiosk_rights)),
    (silence, r"net::ERR_|status of 401"), (old_answers, r"net::ERR_|status of 401"),
]
