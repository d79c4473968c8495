// The accessibility audit: names, roles, order, and the contrast of each text to its background. The body of a function
// (page.py) that returns the faults.
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
