"""The README's pictures of cards, of a real agent with disks in files: portrait_cards.py FOLDER, with INLET_BINARY in the environment.

As root. `cards.png` shows the view, `kiosk.png` a card that is safe, one that is not yet, one that needs somebody, and a disk that
no pattern fits; `kiosk-safe.png` one card, and `kiosk-no-answer.png` the kiosk of an agent that has stopped.
"""

import random
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from checks_cards import kiosk_page, picture, red, shows
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


def main():
    folder = Path(sys.argv[1]).absolute()
    # Its name is in the pictures.
    base = Path(tempfile.gettempdir()) / "inlet-demo"
    # A run that was killed may have left it.
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    with Sandbox(base) as sandbox, closing(CardStation(base, sandbox)) as station:
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
                station.stop()
                red(kiosk, 11)
                picture(kiosk, "kiosk-no-answer")
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
