import { byId, h, toast } from "./dom.js";
import { live } from "./live.js";
import { logout } from "./api.js";
import { badge, button, paint } from "./parts.js";
import { clock, relative, span } from "./text.js";
import { needing, sentence } from "./health.js";
import { help } from "./keys.js";

const LINKS = [
    ["", "Overview", "o"], ["files", "Files", "f"], ["destinations", "Destinations", "d"],
    ["roots", "Watch roots", "w"], ["route", "Route tester", "r"], ["log", "Log", "l"],
    ["config", "Configuration", "c"],
];
const dismissed = new Set();
// What this page was made for; another version after an update needs the page anew.
let version = null;

export function drawShell(view, redraw) {
    const isOut = live.connection === "out";
    paint(byId("nav"), isOut ? null : h("ul", {}, LINKS.map(([path, text, key]) => h("li", {},
        h("a", {
            href: "#/" + path, "aria-current": view === path ? "page" : null, "aria-keyshortcuts": `g ${key}`,
        }, text, mark(path))))));
    paint(byId("connection"), isOut ? null : connection());
    paint(byId("tools"),
        live.session?.access === "read" ? badge("read only", "neutral") : null,
        button(themeWord(), changeTheme.bind(null, redraw), { "aria-label": `Theme: ${theme()}. Change it` }),
        button("Keys", help, { "aria-keyshortcuts": "?" }),
        !isOut && live.session?.login !== "none" ? button("Log out", leave) : null);
    paint(byId("banners"), isOut ? null : banners(redraw));
    document.body.classList.toggle("stale", live.connection === "lost");
}

function mark(path) {
    const number = path === "" ? needing(live.status) : 0;
    if (!number) return null;
    return h("span", { class: `count ${sentence(live.status).tone}` },
        h("span", { class: "hidden" }, ", things that need you: "), number);
}

function connection() {
    if (live.connection === "live") return badge("live", "good");
    if (live.connection === "polling") return badge("asked every 2 s", "waiting");
    if (live.connection === "lost") return badge("connection lost", "bad");
    return badge("connecting", "neutral");
}

function banners(redraw) {
    const shown = [];
    if (live.connection === "lost") {
        const why = live.why ? ` It says: ${live.why}.` : "";
        const old = live.status ? ` What is shown is from ${clock(live.since)} and old.` : "";
        shown.push(banner("lost", "bad",
            `No connection to Inlet since ${clock(live.since)} (${span(Date.now() - live.since)}).${old}${why} Trying again.`));
    }
    version ??= live.session?.version ?? null;
    if (live.session && version !== live.session.version) {
        shown.push(banner("version", "waiting", `Inlet is now version ${live.session.version}; this page is of ${version}.`,
            button("Load the page again", () => location.reload())));
    }
    if (live.restartedAt && Date.now() - new Date(live.restartedAt) < 600000) {
        shown.push(banner("restart " + live.restartedAt, "neutral",
            `Inlet was started again at ${clock(live.restartedAt)}. Everything here was read anew.`, "dismiss"));
    }
    shown.push(resuming());
    return shown.filter((entry) => entry && !dismissed.has(entry.key)).map((entry) => entry.draw(redraw));
}

function banner(key, tone, text, action) {
    const draw = (redraw) => h("div", { key, class: `banner ${tone}` }, h("p", {}, text),
        action === "dismiss"
            ? button("Dismiss", () => {
                dismissed.add(key);
                redraw();
            })
            : action);
    return { key, draw };
}

/** How far the files are that waited when the agent started, and what came of them. */
function resuming() {
    const now = live.status?.resuming;
    if (now) return banner("resuming", "neutral", `Resuming after the start: ${resumed(now)}.`);
    const ended = live.events.findLast((event) => event.event === "queue.resumed");
    if (!ended || !live.status || Date.now() - new Date(ended.ts) > 600000) return null;
    return banner("resumed " + ended.seq, ended.failed ? "waiting" : "good",
        `After the start, ${relative(ended.ts, Date.now())}: ${resumed(ended)}.`, "dismiss");
}

function resumed({ resumed, of, failed, waiting }) {
    return `${resumed} of ${of} resumed` + (failed ? `, ${failed} failed` : "") + (waiting ? `, ${waiting} waiting again` : "");
}

async function leave() {
    try {
        await logout();
        location.reload();
    } catch (error) {
        toast(error.message, "bad");
    }
}

const theme = () => document.documentElement.dataset.theme ?? "system";
const themeWord = () => ({ light: "Light", dark: "Dark" })[theme()] ?? "System";

function changeTheme(redraw) {
    const next = { system: "light", light: "dark", dark: "system" }[theme()];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try { localStorage.setItem("inlet-theme", next); } catch { /* It holds for this page then. */ }
    redraw();
}
