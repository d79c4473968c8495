// What stands around every view: the links, the connection, the banners.
import { post } from "./api.js";
import { byId, h, keep, paint, toast } from "./dom.js";
import { needing, sentence } from "./health.js";
import { help } from "./keys.js";
import { live } from "./live.js";
import { badge, button, isReader } from "./parts.js";
import { clock, relative, span } from "./text.js";
import { VIEWS } from "./views.js";

const CONNECTIONS = {
    live: ["live", "good"], polling: ["asked every 2 s", "waiting"], lost: ["connection lost", "bad"],
};
/** How long a start is spoken of. */
const NEWS = 600000;
const dismissed = new Set();
// What this page was made for; another version after an update needs the page anew.
let version = null;

/** path: of the view that is shown, null at the login. */
export function drawShell(path, redraw) {
    const isOut = path === null;
    paint(byId("nav"), isOut ? null : h("ul", {}, VIEWS.map((view) => h("li", {},
        h("a", {
            href: "#/" + view.path, "aria-current": view.path === path ? "page" : null,
            "aria-keyshortcuts": `g ${view.key}`,
        }, view.title, view.path === "" ? mark() : null)))));
    paint(byId("connection"), isOut ? null : badge(...(CONNECTIONS[live.connection] ?? ["connecting", "neutral"])));
    paint(byId("tools"),
        isReader() ? badge("read only", "neutral") : null,
        button(themeWord(), () => changeTheme(redraw), { "aria-label": `Theme: ${theme()}. Change it` }),
        h("a", { href: "/manual/" }, "Manual"),
        button("Keys", help, { "aria-keyshortcuts": "?" }),
        !isOut && live.session?.login !== "none" ? button("Log out", leave) : null);
    paint(byId("banners"), isOut ? null : [lost(), update(), restart(), resuming()].filter((node) =>
        node && !dismissed.has(node.key)));
    document.body.classList.toggle("stale", live.connection === "lost");
}

/** How many things need somebody, behind the first link. */
function mark() {
    const number = needing(live.status);
    if (!number) return null;
    return h("span", { class: `count ${sentence(live.status).tone}` },
        h("span", { class: "hidden" }, ", things that need you: "), number);
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
    const why = live.why ? ` It says: ${live.why}.` : "";
    const [since, ago] = [clock(live.since), span(Date.now() - live.since)];
    const old = live.status ? ` What is shown is from ${since} and old.` : "";
    return banner("lost", "bad", `No connection to Inlet since ${since} (${ago}).${old}${why} Trying again.`);
}

function update() {
    version ??= live.session?.version ?? null;
    if (!live.session || version === live.session.version) return null;
    return banner("version", "waiting", `Inlet is now version ${live.session.version}; this page is of ${version}.`,
        button("Load the page again", () => location.reload()));
}

function restart() {
    const at = live.restartedAt;
    if (!at || Date.now() - new Date(at) >= NEWS) return null;
    return dismissable(`restart ${at}`, "neutral",
        `Inlet was started again at ${clock(at)}. Everything here was read anew.`);
}

/** How far the files are that waited when the agent started, and what came of them. */
function resuming() {
    const now = live.status?.resuming;
    if (now) return banner("resuming", "neutral", `Resuming after the start: ${resumed(now)}.`);
    const ended = live.events.findLast((event) => event.event === "queue.resumed");
    if (!ended || !live.status || Date.now() - new Date(ended.ts) > NEWS) return null;
    return dismissable(`resumed ${ended.seq}`, ended.failed ? "waiting" : "good",
        `After the start, ${relative(ended.ts)}: ${resumed(ended)}.`);
}

function resumed({ resumed, of, failed, waiting }) {
    const rest = [failed ? `, ${failed} failed` : "", waiting ? `, ${waiting} waiting again` : ""].join("");
    return `${resumed} of ${of} resumed${rest}`;
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
