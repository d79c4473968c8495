// The latest lines of the log, and events as text.
import { get } from "./api.js";
import { byId, h, toast } from "./dom.js";
import { bytes, count, number, plain, took } from "./format.js";
import { hearFrom, live } from "./live.js";
import {
    badge, button, choice, field, jobLink, name, searchBox, searchForm, setFilter, when,
} from "./parts.js";
import { LEVELS } from "./states.js";

const TONES = { warning: "waiting", error: "bad" };
const MOST = 1000;
// Shown apart from the other fields.
const APART = new Set(["seq", "ts", "level", "event", "job", "path", "repeats"]);

/** `job.delivered a.mp4 destination=r2 …`, without the fields `left`, which the reader knows already. */
export function eventText(event, ...left) {
    const fields = Object.entries(event)
        .filter(([key, value]) => !APART.has(key) && !left.includes(key) && value !== "");
    return h("span", {},
        TONES[event.level] ? [badge(event.level, TONES[event.level]), " "] : null,
        h("strong", {}, event.event), " ", repeated(event), subject(event, left),
        fields.map(([key, value]) => h("span", { class: "field" },
            key.replace(/_ms$/, "") + "=", h("bdi", {}, shown(key, value)), " ")));
}

/** A warning stands for its repeats, too, which the agent counts instead of logging each: `×11`. */
function repeated({ repeats }) {
    if (!repeats) return null;
    const title = `and ${count(repeats, "repeat")} since the last such line`;
    return [h("span", { class: "repeats", title }, `×${number(repeats + 1)}`), " "];
}

function subject({ job, path }, left) {
    const known = left.includes("path") ? null : path;
    if (job !== undefined && !left.includes("job")) return [jobLink(job, known), " "];
    return known ? [name(known), " "] : null;
}

function shown(key, value) {
    if (Array.isArray(value)) return value.join(", ");
    if (typeof value === "number" && /(^|_)ms$/.test(key)) return took(value);
    if (typeof value === "number" && ["size", "sent", "bytes"].includes(key)) return bytes(value);
    return plain(value);
}

export const view = {
    load: (page) => {
        hearFrom(level(page) === "debug" ? "debug" : "info");
        page.data.old = [];
        page.data.paused ??= null;
    },
    render: (page) => h("div", { key: "log" }, form(page),
        h("p", { class: "small", key: "count" }, page.data.paused
            ? `Paused · ${count(live.events.filter((event) => event.seq > page.data.paused).length, "new event")}`
            : "Live, the newest last"),
        h("p", { key: "older" }, button("Older", () => older(page))),
        // Lines are added one by one, because redrawing a thousand of them for each is slow.
        h("ol", { id: "lines", class: "lines", key: "lines", own: true, tabindex: 0, "aria-label": "Events" })),
    drawn: (page) => draw(page, byId("lines")),
};

const level = (page) => page.query.get("level") ?? "info";

function form(page) {
    const setLevel = (event) => setFilter(page, "level", event.target.value);
    return searchForm("Log",
        field("Lowest level", choice({ id: "level", value: level(page), onchange: setLevel }, LEVELS)),
        field("Search", searchBox(page, { id: "find" }), "grow"),
        button(page.data.paused ? "Follow" : "Pause", () => {
            page.data.paused = page.data.paused ? null : live.events.at(-1)?.seq ?? 1;
            page.redraw();
        }));
}

async function older(page) {
    const first = page.data.old[0]?.seq ?? live.events[0]?.seq ?? Number.MAX_SAFE_INTEGER;
    try {
        const events = await get("log", { level: level(page), limit: 200, before: first });
        page.data.old = [...events.filter((event) => event.seq < first), ...page.data.old].slice(0, MOST);
        if (!events.length) toast("No older events in memory");
    } catch (error) {
        toast(error.message, "bad");
    }
    page.redraw();
}

const matches = (query, least) => (event) => LEVELS.indexOf(event.level) >= least
    && (!query || Object.values(event).join(" ").toLowerCase().includes(query));

function draw(page, list) {
    const { paused, old = [] } = page.data;
    const query = (page.query.get("q") ?? "").toLowerCase();
    const wanted = [...old, ...live.events].filter((event) => !paused || event.seq <= paused)
        .filter(matches(query, LEVELS.indexOf(level(page)))).slice(-(MOST + old.length));
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
    const seqs = new Set(wanted.map((event) => event.seq));
    // Another agent counts from 1 again.
    if (page.data.epoch !== live.status.started_at) list.replaceChildren();
    page.data.epoch = live.status.started_at;
    for (const line of [...list.children]) if (!seqs.has(line.seq)) line.remove();
    let place = list.firstChild;
    for (const event of wanted) {
        if (place?.seq === event.seq) {
            place = place.nextSibling;
            continue;
        }
        const line = h("li", { class: event.level }, when(event.ts), " ", eventText(event));
        line.seq = event.seq;
        list.insertBefore(line, place);
    }
    if (isAtEnd && !paused) list.scrollTop = list.scrollHeight;
}
