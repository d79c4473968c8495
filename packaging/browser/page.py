"""The browser, and the requirements that every page must meet."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from station import until

# By address: the key after g, and the title; of VIEWS those that every agent has.
SCRIPT = Path(__file__).resolve().parents[2] / "Sources/InletWeb/page/views.js"
LISTED = re.findall(r'path: "(\w*)", key: "(\w)", title: "([^"]+)"(, needs: )?', SCRIPT.read_text())
ALL_VIEWS = {path: (key, title) for path, key, title, _ in LISTED}
VIEWS = {path: (key, title) for path, key, title, needs in LISTED if not needs}

AUDIT = Path(__file__).with_name("audit.js").read_text()


class Page:
    """One tab of a headless chromium, whose user reads these languages, as in `de-DE`."""

    def __init__(self, pictures, languages="en-US"):
        options = webdriver.ChromeOptions()
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000",
            # The browser's own requests to its maker would count as the page's.
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
        ):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"intl.accept_languages": languages})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.pictures = pictures
        self.hosts = set()

    def close(self):
        self.driver.quit()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def open(self, url):
        """Reloads the page, even if only the part after # differs."""
        self.driver.get("about:blank")
        self.driver.get(url)

    def read(self, url):
        """Reloads the page, and waits for its data."""
        self.open(url)
        self.shows("live", within="#connection")
        until(lambda: "Loading…" not in self.text(), what=f"{url} is read")

    def go(self, view):
        """Opens a view, or the page of a file; `view` may have a query."""
        self.run("location.hash = arguments[0]", "#/" + view)
        self.shows(ALL_VIEWS.get(view.partition("?")[0], ("", "Job "))[1], within="h1")

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector, seconds=30):
        return until(lambda: self.find(selector), seconds, selector)[0]

    def text(self, selector="main"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def shows(self, *texts, within="main", seconds=30):
        for text in texts:
            until(lambda: text in self.text(within), seconds, f"'{text}' in {within}", words=lambda: self.text(within)[:1500])

    def hides(self, text, selector="main", seconds=30):
        until(lambda: text not in self.text(selector), seconds, f"'{text}' gone from {selector}")

    def texts(self, selector):
        """The present text of each; a redraw in between does not matter."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)", selector)

    def button(self, text, within="main"):
        """The visible, enabled button with exactly this text."""
        script = """return [...document.querySelectorAll(arguments[0] + ' button')].find((node) =>
            node.innerText.trim() === arguments[1] && node.checkVisibility() && !node.disabled)"""
        return until(lambda: self.run(script, within, text), 30, f"button '{text}' in {within}")

    def press(self, text, within="main"):
        # A redraw may come between finding and pressing.
        self.run("arguments[0].click()", self.button(text, within))

    def press_link(self, text, within="main"):
        script = """return [...document.querySelectorAll(arguments[0] + ' a')].find((node) => node.innerText.trim() === arguments[1])"""
        self.run("arguments[0].click()", until(lambda: self.run(script, within, text), 30, f"link '{text}' in {within}"))

    def type(self, selector, text):
        self.overwrite(self.one(selector), text)

    @staticmethod
    def overwrite(field, text):
        """As a person does: the field keeps the focus all the time, and no redraw may take it or what is in it."""
        field.send_keys(Keys.CONTROL + "a" + Keys.NULL + Keys.BACKSPACE + text)

    def keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def choose(self, selector, value):
        self.run("""arguments[0].value = arguments[1];
            arguments[0].dispatchEvent(new Event('change', { bubbles: true }))""", self.one(selector), value)

    def log_in(self, secret):
        self.type("#secret", secret + Keys.ENTER)

    def picture(self, name):
        if not self.pictures:
            return
        time.sleep(0.4)
        height = self.run("return Math.min(2400, document.documentElement.scrollHeight)")
        width = self.run("return innerWidth")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": max(700, height), "deviceScaleFactor": 1, "mobile": False})
        self.driver.save_screenshot(str(self.pictures / f"{name}.png"))
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def emulate(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []})

    def network(self, is_on):
        """Also of files: whatever asks another machine fails, and the console says so."""
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": not is_on, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})

    def phone(self, is_on):
        if not is_on:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            return
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})

    def audit(self, where=""):
        """Fails where the accessibility audit finds faults."""
        faults = self.run(AUDIT)
        assert not faults, f"{where}: {faults}"

    def faults(self, allowed):
        """Errors and warnings of the console since the last call, without those that the check provokes."""
        entries = self.driver.get_log("browser")
        found = [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
        return [message for message in found if not (allowed and re.search(allowed, message))]

    def strangers(self, own):
        """All addresses that the page has requested so far, except its own agent's."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            if not message["params"].get("documentURL", "").startswith("http"):
                continue
            self.hosts.add(message["params"]["request"]["url"])
        return sorted(url for url in self.hosts if urlsplit(url).netloc != own and not url.startswith("data:"))
