import { byId, h } from "./dom.js";

const PLACES = { o: "", f: "files", d: "destinations", w: "roots", r: "route", l: "log", c: "config" };
const HELP = [
    ["g then o", "Overview"], ["g then f", "Files"], ["g then d", "Destinations"], ["g then w", "Watch roots"],
    ["g then r", "Route tester"], ["g then l", "Log"], ["g then c", "Configuration"], ["/", "Search"],
    ["j or ↓, k or ↑", "Next and previous in a list"], ["Enter", "Open"], ["x", "Select a file"],
    ["Esc", "Close, or back to the list"], ["?", "This list"],
];
let pending = 0;

const isOff = () => {
    try { return localStorage.getItem("inlet-keys") === "off"; } catch { return false; }
};

export function help() {
    const dialog = byId("dialog");
    if (dialog.open) return;
    dialog.onclose = null;
    dialog.replaceChildren(
        h("h2", { id: "dialog-title" }, "Keys"),
        h("dl", { class: "keys" }, HELP.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: !isOff(), onchange: keep }),
            "Single keys do something"),
        h("div", { class: "actions" },
            h("button", { type: "button", class: "primary", autofocus: true, onclick: () => dialog.close() }, "Close")));
    dialog.showModal();
}

function keep(event) {
    try { localStorage.setItem("inlet-keys", event.target.checked ? "on" : "off"); } catch { /* This page only. */ }
}

export function listenToKeys() {
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || byId("dialog").open) return;
        const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
        if (event.key === "Escape") return escape(event, typing);
        if (typing || isOff() && !event.key.startsWith("Arrow")) return;
        if (press(event)) event.preventDefault();
    });
}

function escape(event, typing) {
    if (typing) event.target.blur();
    else if (/^#\/files\/\d/.test(location.hash)) history.length > 1 ? history.back() : (location.hash = "#/files");
}

function press(event) {
    const after = Date.now() - pending < 1500;
    pending = 0;
    if (after && event.key in PLACES) {
        location.hash = "#/" + PLACES[event.key];
        return true;
    }
    const inList = event.target.hasAttribute("data-go");
    switch (event.key) {
    case "g":
        pending = Date.now();
        return true;
    case "?":
        help();
        return true;
    case "/": return search();
    case "j": return step(1);
    case "k": return step(-1);
    case "ArrowDown": return inList && step(1);
    case "ArrowUp": return inList && step(-1);
    case "x": return select(event.target);
    default: return false;
    }
}

function search() {
    const field = document.querySelector("[data-search]");
    if (field) field.focus();
    else location.hash = "#/files?find=1";
    return true;
}

function step(way) {
    const all = [...document.querySelectorAll("main [data-go]")];
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (way > 0 ? 0 : all.length - 1) : at + way];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    return all.length > 0;
}

function select(target) {
    const box = target.closest("tr")?.querySelector("input[type=checkbox]");
    box?.click();
    return Boolean(box);
}
