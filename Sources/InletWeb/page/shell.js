// The frame around every view: links, connection, banners.
import { post } from "./api.js";
import { byId, h, keep, paint, toast } from "./dom.js";
import { clock, number, relative } from "./format.js";
import { needing, sentence } from "./health.js";
import { help } from "./keys.js";
import { live } from "./live.js";
import { badge, button, isReader, isolated } from "./parts.js";
import { offered } from "./views.js";

const CONNECTIONS = {
    live: ["live", "good"], polling: ["updates every 2 s", "waiting"], lost: ["connection lost", "bad"],
};
/** For this long, in milliseconds, a banner reports a start. */
const NEWS = 600000;
const dismissed = new Set();
// The version that this page belongs to; after an update the page must be loaded again.
let version = null;

/** path: of the open view, null at the login. */
export function drawShell(path, redraw) {
    const isOut = path === null;
    paint(byId("nav"), isOut ? null : h("ul", {}, offered(live.status).map((view) => h("li", {},
        h("a", {
            href: "#/" + view.path, "aria-current": view.path === path ? "page" : null,
            "aria-keyshortcuts": `g ${view.key}`,
        }, view.title, view.path === "" ? mark() : null)))));
    paint(byId("connection"), isOut ? null : badge(...(CONNECTIONS[live.connection] ?? ["connecting", "neutral"])));
    paint(byId("tools"),
        isReader() ? badge("read-only", "neutral") : null,
        button(themeWord(), () => changeTheme(redraw), { "aria-label": `Theme: ${theme()}. Change it` }),
        h("a", { href: "/manual/" }, "Manual"),
        button("Keys", help, { "aria-keyshortcuts": "?" }),
        !isOut && live.session?.login !== "none" ? button("Log out", leave) : null);
    paint(byId("banners"), isOut ? null : [lost(), update(), fleet(), restart(), resuming()].filter((node) =>
        node && !dismissed.has(node.key)));
    document.body.classList.toggle("stale", live.connection === "lost");
}

/** The number of problems, behind the first link. */
function mark() {
    const problems = needing(live.status);
    if (!problems) return null;
    return h("span", { class: `count ${sentence(live.status).tone}` },
        h("span", { class: "hidden" }, ", problems: "), number(problems));
}

const banner = (key, tone, text, action) =>
    h("div", { key, class: `banner ${tone}` }, h("p", {}, text), action);

function dismissable(key, tone, text) {
    const dismiss = (event) => {
        dismissed.add(key);
        event.target.closest(".banner").remove();
    };
    return banner(key, tone, text, button("Dismiss", dismiss));
}

function lost() {
    if (live.connection !== "lost") return null;
    const why = live.why ? ` Inlet answers: ${live.why}.` : "";
    const old = live.status ? ` Showing data from ${clock(live.since)}, ${relative(live.since)}.` : "";
    return banner("lost", "bad", `No connection to Inlet.${why} Retrying automatically.${old}`);
}

function update() {
    version ??= live.session?.version ?? null;
    if (!live.session || version === live.session.version) return null;
    return banner("version", "waiting",
        `Reload this page: its version is ${version}, and Inlet's version is ${live.session.version}.`,
        button("Reload page", () => location.reload()));
}

/** What goes on while the fleet's PostgreSQL gives nothing. */
const MEANWHILE = {
    away: ["bad", "PostgreSQL of the fleet is away",
        "Local folders go on; new files without an own prefix wait, then get a tag if when_away allows it."],
    recovering: ["waiting", "The fleet is recovering",
        "It gives no new keys until every agent has reported; files that have their key are sent."],
    confirming: ["waiting", "PostgreSQL of the fleet was restarted",
        "It gives keys again as soon as all agents are back, at the latest after one lease."],
    refused: ["bad", "The fleet refuses this agent", "Files that have their key are sent."],
};

function fleet() {
    const now = live.status?.fleet;
    const [tone, text, meanwhile] = MEANWHILE[now?.state] ?? [];
    if (!text) return null;
    const since = now.since ? ` since ${clock(now.since)}` : "";
    const waits = now.waiting_for.length ? [" Waiting for ", isolated(now.waiting_for.join(", ")), "."] : null;
    return banner("fleet", tone, [`${text}${since}. ${meanwhile}`, waits, " ", isolated(now.message)],
        h("a", { href: "#/fleet" }, "Show the fleet"));
}

function restart() {
    const at = live.restartedAt;
    if (!at || Date.now() - new Date(at) >= NEWS) return null;
    return dismissable(`restart ${at}`, "neutral",
        `Inlet restarted at ${clock(at)}. This page shows its current data.`);
}

/** The progress of the files that waited when the agent started, and the result. */
function resuming() {
    const now = live.status?.resuming;
    if (now) return banner("resuming", "neutral", `Files that waited at the start: ${resumed(now)} so far.`);
    const ended = live.events.findLast((event) => event.event === "queue.resumed");
    if (!ended || !live.status || Date.now() - new Date(ended.ts) > NEWS) return null;
    return dismissable(`resumed ${ended.seq}`, ended.failed ? "waiting" : "good",
        `Files that waited at the start: ${resumed(ended)}, ${relative(ended.ts)}.`);
}

function resumed({ resumed, of, failed, waiting }) {
    return `${number(resumed)} of ${number(of)} resumed` + (failed ? `, ${number(failed)} failed` : "")
        + (waiting ? `, ${number(waiting)} waiting again` : "");
}

async function leave() {
    try {
        await post("logout");
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
    keep("inlet-theme", next);
    redraw();
}
