// The entry point: chooses the view, and redraws it.
import { get, onLogin, post } from "./api.js";
import { announce, byId, debounced, h, paint } from "./dom.js";
import { number } from "./format.js";
import { needing, spoken } from "./health.js";
import { listenToKeys } from "./keys.js";
import { live, rest, start, stop, subscribe, wake } from "./live.js";
import { login } from "./login.js";
import { isReader, muted } from "./parts.js";
import { drawShell } from "./shell.js";
import { STORY, VIEWS } from "./views.js";

let [shown, waiting, said] = [null, false, ""];

/** `#/files/17?state=failed` as the view, the id and the query. */
function place() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [name, id] = path.split("/");
    const listed = VIEWS.find((view) => view.path === name) ?? VIEWS[0];
    const isStory = listed.path === STORY.path && /^\d+$/.test(id ?? "");
    return { entry: isStory ? STORY : listed, id: isStory ? id : null, query: new URLSearchParams(query) };
}

/** The state of a view while it is open; `data` belongs to the view. A page that `arrives` gets the focus. */
function open(where, arrives) {
    const page = { ...where, arrives, view: null, data: {}, error: null, redraw, open: true };
    page.load = async () => {
        try {
            page.view ??= await viewOf(page.entry);
            if (page.open) redraw();
            await page.view.load?.(page);
            page.error = null;
        } catch (error) {
            page.error = error;
        }
        if (page.open) redraw();
    };
    page.setQuery = (values) => {
        const query = new URLSearchParams(page.query);
        for (const [key, value] of Object.entries(values)) value ? query.set(key, value) : query.delete(key);
        const text = query.toString();
        location.hash = "#/" + [page.entry.path, page.id].filter(Boolean).join("/") + (text ? "?" + text : "");
    };
    return page;
}

async function viewOf(entry) {
    try {
        return (await entry.script()).view;
    } catch {
        throw new Error("Inlet did not answer. The page loads again as soon as it does.");
    }
}

function go() {
    // The target of the skip link, not a view.
    if (location.hash === "#main") return;
    const where = place();
    const before = shown;
    if (before && before.entry === where.entry && before.id === where.id) {
        before.query = where.query;
    } else {
        if (before) before.open = false;
        shown = open(where, before !== null);
    }
    if (live.status) shown.load();
    draw();
}

function arrive() {
    shown.arrives = false;
    window.scrollTo(0, 0);
    const target = shown.query.has("find") && document.querySelector("[data-search]");
    (target || byId("main").querySelector("h1"))?.focus();
}

function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
}

function draw() {
    waiting = false;
    if (!shown) return;
    const isOut = live.connection === "out";
    drawShell(isOut ? null : shown.entry.path, redraw);
    const title = isOut ? "Log in" : [shown.entry.title, shown.id].filter(Boolean).join(" ");
    const problems = needing(live.status);
    document.title = (problems ? `(${number(problems)}) ` : "") + `${title} · Inlet`;
    paint(byId("main"), h("h1", { tabindex: -1 }, title), isOut ? login(begin) : body());
    if (!isOut && live.status) shown.view?.drawn?.(shown);
    if (shown.arrives && (isOut || shown.view || shown.error)) arrive();
}

function body() {
    if (!live.status) return muted(live.connection === "lost" ? "No data yet" : "Loading…");
    return [
        shown.error ? h("p", { class: "banner bad", key: "error" }, shown.error.message) : null,
        isReader() ? muted("Read-only access. To make changes, log in with the full token or the password.") : null,
        shown.view ? shown.view.render(shown) : shown.error ? null : muted("Loading…"),
    ];
}

/** Announces changes of the health and of the connection, but not the numbers of each second. */
function speak() {
    const now = { lost: "Connection lost.", live: "Connected.", polling: "Connected." }[live.connection] ?? "";
    const text = [now, live.status && live.connection !== "lost" ? spoken(live.status) : ""].join(" ");
    if (text !== said) announce(text);
    said = text;
}

/** Follows the link of `inlet open`, whose code must not stay in the browser's history. Returns whether it was one. */
async function enter() {
    const code = /^#\/enter\/(\w+)$/.exec(location.hash)?.[1];
    if (!code) return false;
    history.replaceState(null, "", "#/");
    try {
        await post("login", { secret: code });
    } catch {
        // The login says how to get another link.
    }
    return true;
}

async function begin() {
    try {
        live.session = await get("session");
    } catch {
        // `start` shows the error, and retries.
        return start();
    }
    // A kiosk may only see the cards, at an address of its own.
    if (["none", "kiosk"].includes(live.session.access)) stop("out");
    else start();
    redraw();
}

onLogin(() => {
    if (live.connection === "out") return;
    stop("out");
    get("session").then((session) => { live.session = session; }, () => {}).then(redraw);
});
subscribe((what, data) => {
    // Browsers do not ask twice for a script.
    if (what === "again" && shown?.error && !shown.view) location.reload();
    else if (what === "again") shown?.load();
    if (what === "log") shown?.view?.log?.(shown, data);
    if (what === "status") shown?.view?.status?.(shown);
    speak();
    redraw();
});
addEventListener("hashchange", async () => {
    const isNew = await enter();
    go();
    if (isNew) begin();
});
// Keeps relative times up to date.
setInterval(() => document.hidden || redraw(), 1000);
// Some browsers keep a page that you leave, with its connections, and allow only a few of these to one address.
addEventListener("pagehide", rest);
addEventListener("pageshow", wake);
const restIfHidden = debounced(30000, () => document.hidden && rest());
document.addEventListener("visibilitychange", () => (document.hidden ? restIfHidden() : wake()));
document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
});
listenToKeys();
await enter();
go();
begin();
