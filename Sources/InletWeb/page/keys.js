// The keyboard.
import { byId, h, keep, kept } from "./dom.js";
import { live } from "./live.js";
import { button } from "./parts.js";
import { offered } from "./views.js";

const list = () => [
    ...offered(live.status).map(({ key, title }) => [`g then ${key}`, title]),
    ["/", "Search"], ["j or ↓, k or ↑", "Next or previous entry of a list"], ["Enter", "Open"], ["x", "Select a file"],
    ["Esc", "Close, or return to the list"], ["?", "Show this list"],
];
const SETTING = "inlet-keys";
let pending = 0;

const isOff = () => kept(SETTING) === "off";

export function help() {
    const dialog = byId("dialog");
    if (dialog.open) return;
    const set = (event) => keep(SETTING, event.target.checked ? "on" : "off");
    dialog.onclose = null;
    dialog.replaceChildren(
        h("h2", { id: "dialog-title" }, "Keyboard shortcuts"),
        h("dl", { class: "keys" }, list().map(([key, text]) =>
            h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: !isOff(), onchange: set }),
            "Enable single-key shortcuts"),
        h("div", { class: "actions" },
            button("Close", () => dialog.close(), { class: "primary", autofocus: true })));
    dialog.showModal();
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

/** Whether the page uses the key. */
function press(event) {
    const view = Date.now() - pending < 1500 ? offered(live.status).find(({ key }) => key === event.key) : null;
    pending = 0;
    if (view) {
        location.hash = "#/" + view.path;
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
    const next = at < 0 ? all.at(way > 0 ? 0 : -1) : all[at + way];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    return all.length > 0;
}

function select(target) {
    const box = target.closest("tr")?.querySelector("input[type=checkbox]");
    box?.click();
    return Boolean(box);
}
