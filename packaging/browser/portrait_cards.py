"""The README's pictures of cards, of a real agent with disks in files: portrait_cards.py FOLDER, with INLET_BINARY in the environment.

As root. `cards.png` shows the view, `kiosk.png` a card that is safe, one that is not yet, one that needs somebody, and a disk that
no pattern fits; `kiosk-others.png` one that is out, one with other files, one of which only sizes were compared, an empty one and one
that was pulled; `kiosk-safe.png` one card, and `kiosk-no-answer.png` the kiosk of an agent that has stopped.
"""

import random
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from checks_cards import kiosk_page, picture, press, red, shows
from page import Page
from station import TOKEN, CardStation, Sandbox, until

MIB = 1 << 20


def clips(number, size, folder="DCIM/100EOSR5", name="IMG_{:04}.CR3"):
    content = random.Random(7).randbytes
    return {f"{folder}/{name.format(count)}": content(size) for count in range(1, number + 1)}


def work(page, kiosk, station):
    """Inserts the cards, one in each state."""
    first = station.card("EOS_DIGITAL", clips(6, 300_000))
    first.insert()
    shows(page, "EOS_DIGITAL", "SAFE TO REMOVE", seconds=60)
    for key, text in {"roll": "A001", "camera": "A cam"}.items():
        page.type(f"input[id^={key}-]", text)
    page.press("Save names")
    shows(kiosk, "EOS_DIGITAL", "A001", "SAFE TO REMOVE")
    picture(kiosk, "kiosk-safe")
    lost = station.card("UNTITLED", clips(4, 200_000))
    lost.insert()
    shows(page, "UNTITLED", "SAFE TO REMOVE", seconds=60)
    lost.remove()
    until(lambda: not station.told("UNTITLED"), what="the card is out")
    for copy in sorted((station.library / "UNTITLED").rglob("*.CR3"))[:2]:
        copy.unlink()
    lost.insert()
    shows(page, "UNTITLED", "CALL SOMEBODY", seconds=60)
    station.card("BACKUP", {"Documents/taxes.ods": bytes(20_000)}).insert()
    shows(page, "BACKUP", "NOT KNOWN HERE", seconds=60)
    station.card("SONY_A7S", clips(9, 12 * MIB, "DCIM/100MSDCF", "DSC{:05}.ARW"), megabytes=160).insert()
    shows(page, "SONY_A7S", "NOT YET", seconds=60)
    until(lambda: (station.told("SONY_A7S") or {}).get("seconds_left"), 60, "the time left")


def other_states(page, kiosk, station):
    """The states that `work` does not show."""
    cards = {card.label: card for card in station.cards}
    for label in ("UNTITLED", "BACKUP"):
        cards[label].remove()
        until(lambda: not station.told(label), what=f"{label} is out")
    station.card("NIKON_Z6", clips(5, 200_000, "DCIM/102NZ6__", "DSC_{:04}.NEF") | {"MISC/notes.txt": b"take 3"}).insert()
    station.card("H6_AUDIO", clips(3, 100_000, "DCIM/FOLDER01", "ZOOM{:04}.WAV")).insert()
    station.card("EMPTY", {"DCIM/.DS_Store": b"mac"}).insert()
    for label, words in {"NIKON_Z6": "1 other file", "H6_AUDIO": "NOT VERIFIED", "EMPTY": "NOTHING ON IT"}.items():
        shows(kiosk, label, words, seconds=60)
    cards["SONY_A7S"].pull()
    shows(kiosk, "SONY_A7S", "not copied", seconds=20)
    press(page, "EOS_DIGITAL", "Eject")
    shows(kiosk, "EOS_DIGITAL", "you can take it", seconds=30)
    picture(kiosk, "kiosk-others")


def main():
    folder = Path(sys.argv[1]).absolute()
    # Its name is in the pictures.
    base = Path(tempfile.gettempdir()) / "inlet-demo"
    # A run that was killed may have left it.
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    with Sandbox(base) as sandbox, closing(CardStation(base, sandbox)) as station:
        (base / "audio").mkdir()
        station.settings["destinations"]["audio"] = {"type": "folder", "path": str(base / "audio"), "verify": "size"}
        station.settings["routes"].insert(0, {"name": "sound", "match": {"extensions": ["wav"]}, "to": ["audio"]})
        station.start()
        with closing(Page(folder)) as page:
            page.emulate("light")
            page.open(station.url + "/#/cards")
            page.log_in(TOKEN)
            page.shows("No card is in a reader")
            with closing(kiosk_page(page, station)) as kiosk:
                kiosk.button("Tap to switch the sound on", within="header").click()
                work(page, kiosk, station)
                shows(kiosk, "SONY_A7S", "left")
                picture(kiosk, "kiosk")
                page.picture("cards")
                other_states(page, kiosk, station)
                station.stop()
                red(kiosk, 11)
                picture(kiosk, "kiosk-no-answer")
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
