"""The browser, and what is asked of every page."""

import json
import re
import time
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from station import until

# Their addresses, and what stands at the top of each.
VIEWS = {"": "Overview", "files": "Files", "destinations": "Destinations", "roots": "Watch roots", "route": "Route tester",
         "log": "Log", "config": "Configuration"}

# What a script can see of accessibility: names, roles, order, and the contrast of each text to what is behind it.
AUDIT = r"""
const faults = [];
const add = (what, node) => faults.push(`${what}: ${node.outerHTML.slice(0, 160)}`);
const all = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility());
if (document.documentElement.lang !== "en") faults.push("no language");
if (!document.title) faults.push("no title");
for (const [selector, count] of [["h1", 1], ["main", 1], ["header", 1]])
    if (all(selector).length !== count) faults.push(`${all(selector).length} of ${selector}`);
let level = 0;
for (const heading of all("h1, h2, h3, h4")) {
    const now = Number(heading.tagName[1]);
    if (now > level + 1) add(`heading after level ${level}`, heading);
    level = now;
}
const ids = all("[id]").map((node) => node.id);
ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => faults.push(`id twice: ${id}`));
for (const node of all("input, select, textarea"))
    if (!node.labels?.length && !node.ariaLabel) add("no label", node);
for (const node of all("button, a")) if (!(node.innerText || node.ariaLabel || "").trim()) add("no name", node);
for (const node of all("img")) if (!node.hasAttribute("alt")) add("no alt", node);
for (const node of all("svg")) if (!node.ariaLabel && node.ariaHidden !== "true") add("no text", node);
for (const node of all("table")) if (!node.caption?.textContent) add("no caption", node);
for (const node of all("th")) if (!node.scope) add("no scope", node);
for (const node of all("nav, section")) if (!node.ariaLabel) add("no name", node);
for (const node of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    if (node.id !== "dialog") for (const name of ["aria-labelledby", "aria-describedby"])
        for (const id of (node.getAttribute(name) ?? "").split(" ").filter(Boolean))
            if (!document.getElementById(id)) add(`no ${id}`, node);

const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
        const found = colour(getComputedStyle(at).backgroundColor);
        if (found[3] === 255) return found;
    }
    return [255, 255, 255];
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (seen.has(node) || !texts.currentNode.data.trim() || !node.checkVisibility()) continue;
    seen.add(node);
    if (node.closest("button:disabled, .hidden, noscript, option")) continue;
    const [one, two] = [light(colour(getComputedStyle(node).color)), light(behind(node))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) add(`contrast ${contrast.toFixed(2)}`, node);
}
return faults;
"""


class Page:
    """One tab of a headless chromium."""

    def __init__(self, pictures):
        options = webdriver.ChromeOptions()
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000",
            # Its own questions to its maker are not the page's.
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.pictures = pictures
        self.hosts = set()

    def quit(self):
        self.driver.quit()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def open(self, url):
        """Loads the page anew, also where only the part after # differs."""
        self.driver.get("about:blank")
        self.driver.get(url)

    def read(self, url):
        """Loads the page anew, until it has all that it shows."""
        self.open(url)
        self.shows("live", within="#connection")
        until(lambda: "Reading…" not in self.text(), what=f"{url} is read")

    def go(self, view):
        """To a view, or to one file; `view` may have a query."""
        self.run("location.hash = arguments[0]", "#/" + view)
        self.shows(VIEWS.get(view.partition("?")[0], "Job "), within="h1")

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector, seconds=10):
        return until(lambda: self.find(selector), seconds, selector)[0]

    def text(self, selector="main"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def shows(self, *texts, within="main", seconds=10):
        for text in texts:
            until(lambda: text in self.text(within), seconds, f"'{text}' in {within}", words=lambda: self.text(within)[:1500])

    def hides(self, text, selector="main", seconds=10):
        until(lambda: text not in self.text(selector), seconds, f"'{text}' gone from {selector}")

    def texts(self, selector):
        """What each of them says now; a view that is drawn anew in between does not matter."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)", selector)

    def button(self, text, within="main"):
        """The visible, enabled button with exactly this text."""
        script = """return [...document.querySelectorAll(arguments[0] + ' button')].find((node) =>
            node.innerText.trim() === arguments[1] && node.checkVisibility() && !node.disabled)"""
        return until(lambda: self.run(script, within, text), 10, f"button '{text}' in {within}")

    def press(self, text, within="main"):
        # A view may be drawn anew between finding and pressing.
        self.run("arguments[0].click()", self.button(text, within))

    def type(self, selector, text):
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

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

    def audit(self, where=""):
        """Fails where a script can see that it is not accessible."""
        faults = self.run(AUDIT)
        assert not faults, f"{where}: {faults}"

    def faults(self, allowed):
        """What the console holds of errors and warnings since the last call, without what a check provokes."""
        entries = self.driver.get_log("browser")
        found = [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
        return [message for message in found if not (allowed and re.search(allowed, message))]

    def strangers(self, own):
        """Addresses that the page asked besides its own agent's, so far."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            if not message["params"].get("documentURL", "").startswith("http"):
                continue
            self.hosts.add(message["params"]["request"]["url"])
        return sorted(url for url in self.hosts if urlsplit(url).netloc != own and not url.startswith("data:"))
