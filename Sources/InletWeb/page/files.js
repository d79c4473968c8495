// The lists of files: all of them, and those that ask for something.
import { clearQueue, onSelection, ORDERS } from "./actions.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { ignored, loadIgnored } from "./ignored.js";
import { live } from "./live.js";
import {
    actions, badge, button, choice, field, isolated, isReader, jobLink, muted, name, searchBox, searchForm, setFilter,
    small, table, when,
} from "./parts.js";
import { MEANS, STATES } from "./states.js";

const PAGE = 50;
const FILTERS = ["state", "destination", "route", "q", "path", "batch", "since", "until", "unanswered"];
const SETS = [["failed,expired", "needs you"], ["failed,expired,rejected", "needs attention"],
    ["delivered,duplicate", "delivered or duplicate"]];
/** The lists with a link of their own: its text, its states, and whether it shows open questions only. */
const LISTS = [["All", ""], ["Needs you", "failed,expired"], ["Duplicates", "duplicate", true],
    ["Rejected", "rejected", true]];
/** The states whose files were not sent, and wait for a person's word. */
const ANSWERED = ["duplicate", "rejected"];

export const view = {
    load: async (page) => {
        if (page.query.has("ignored")) return loadIgnored(page);
        const given = Object.fromEntries([...FILTERS, "before"].map((key) => [key, page.query.get(key)]));
        const asked = page.query.toString();
        const jobs = await get("jobs", { ...given, limit: PAGE + 1 });
        // A slow answer to an earlier request.
        if (asked !== page.query.toString()) return;
        page.data.jobs = jobs.slice(0, PAGE);
        page.data.older = jobs.length > PAGE ? jobs[PAGE - 1].job : null;
        for (const job of jobs) if (job.route) routes.add(job.route);
    },
    // The log reports files one by one; the list is loaded once for many of them.
    log: (page, event) => { if (/^(job|file)\./.test(event.event) && event.job !== undefined) again(page); },
    status: (page) => { if (live.connection === "polling") again(page); },
    render: (page) => {
        if (page.query.has("ignored")) return h("div", { key: "files" }, lists(page), ignored(page));
        const chosen = (page.data.chosen ??= new Set());
        return h("div", { key: "files" },
            lists(page), filters(page), selection(page, chosen), list(page, chosen), pager(page));
    },
};

const routes = new Set();
let timer = 0;

function again(page) {
    // A look at a folder is asked for by a person.
    if (page.query.has("ignored")) return;
    clearTimeout(timer);
    const wait = Math.max(0, Math.min(400, (page.data.asked ?? 0) + 2000 - Date.now()));
    timer = setTimeout(() => {
        page.data.asked = Date.now();
        if (page.open) page.load();
    }, wait);
}

/**
 * Links to the lists, with the number of files that a link opens. A list of open questions has none: the states count
 * answered files too.
 */
function lists(page) {
    const files = (states) => states.split(",").reduce((sum, state) => sum + (live.status.files[state] ?? 0), 0);
    const total = Object.values(live.status.files).reduce((sum, number) => sum + number, 0);
    const state = page.query.get("state") ?? "";
    const isIgnored = page.query.has("ignored");
    const link = (text, href, amount, isHere) => h("li", {},
        h("a", { href, "aria-current": isHere ? "page" : null }, text,
            amount == null ? null : h("span", { class: "count" }, number(amount))));
    return h("nav", { class: "tabs", "aria-label": "Lists of files", key: "lists" }, h("ul", {},
        LISTS.map(([text, states, isOpen]) => link(
            text, states ? `#/files?state=${states}${isOpen ? "&unanswered=1" : ""}` : "#/files",
            isOpen ? null : states ? files(states) : total, !isIgnored && state === states)),
        link("Ignored", "#/files?ignored=1", live.status.ignored, isIgnored)));
}

/** A time of the API as a local one for its control, and back. */
const localTime = (time) => {
    const date = new Date(time);
    if (!time || isNaN(date)) return "";
    return new Date(date - 60000 * date.getTimezoneOffset()).toISOString().slice(0, 16);
};
const apiTime = (text) => (text && !isNaN(new Date(text)) ? new Date(text).toISOString() : "");

function filters(page) {
    const value = (key) => page.query.get(key) ?? "";
    const props = (key) =>
        ({ id: key, value: value(key), onchange: (event) => setFilter(page, key, event.target.value) });
    const time = (key) => h("input", {
        id: key, type: "datetime-local", value: localTime(value(key)),
        onchange: (event) => setFilter(page, key, apiTime(event.target.value)),
    });
    const each = STATES.map((name) => [name, `${name} (${number(live.status.files[name])})`]);
    const states = [["", "all"], ...SETS, ...each];
    // Links may name other sets of states.
    if (!states.some(([state]) => state === value("state"))) states.push(value("state"));
    return searchForm("Files",
        field("Search", searchBox(page, { id: "q", placeholder: "part of the path" })),
        field("State", choice({ ...props("state"), onchange: (event) => setState(page, event.target.value) }, states)),
        field("Destination", choice(props("destination"),
            [["", "all"], ...live.status.destinations.map((place) => place.name)])),
        field("Route", h("input", { ...props("route"), list: "routes", autocomplete: "off" })),
        h("datalist", { id: "routes" }, [...routes].sort().map((value) => h("option", { value }))),
        field("Since", time("since")), field("Until", time("until")),
        ANSWERED.includes(value("state")) || value("unanswered") ? unanswered(page) : null,
        FILTERS.some((key) => page.query.has(key))
            ? h("a", { href: "#/files", class: "clear" }, "Clear filters") : null);
}

/** Another list: what was asked of the former one does not hold for it. */
const setState = (page, state) => page.setQuery({ state, unanswered: "", before: "", find: "" });

function unanswered(page) {
    return h("label", { class: "check", key: "unanswered" }, h("input", {
        type: "checkbox", id: "unanswered", checked: page.query.has("unanswered"),
        onchange: (event) => setFilter(page, "unanswered", event.target.checked ? "1" : ""),
    }), "Only those that wait for an answer");
}

/** The states in which an order may have an effect: the number that is said before must be true. */
const FITS = {
    retry: ["failed", "expired", "cancelled", "gone", "pending"], first: ["pending"], cancel: ["pending"],
    leave: ANSWERED, aside: ANSWERED, remove: ["duplicate"], forget: STATES.filter((state) => state !== "pending"),
};

/** The filters in the address as a selection of the API, for an order. */
function matching(page, order) {
    const given = Object.fromEntries(FILTERS.map((key) => [key, page.query.get(key) ?? undefined]));
    const { state, q: text, batch, unanswered: isOpen, ...others } = given;
    const among = state ? state.split(",") : STATES;
    return {
        ...others, text, states: FITS[order].filter((one) => among.includes(one)),
        batch: batch ? Number(batch) : undefined, unanswered: isOpen ? true : undefined,
    };
}

function selection(page, chosen) {
    const shown = page.data.jobs ?? [];
    // Only rows on the screen: an action must not reach files that are no longer visible.
    for (const job of chosen) if (!shown.some((row) => row.job === job)) chosen.delete(job);
    if (isReader()) return null;
    const [none, all] = [chosen.size === 0, chosen.size > 0 && chosen.size === shown.length];
    if (!all || !page.data.older) page.data.everything = false;
    const { everything } = page.data;
    const chooseAll = (event) => {
        chosen.clear();
        if (event.target.checked) for (const job of shown) chosen.add(job.job);
        page.redraw();
    };
    const everyone = () => {
        page.data.everything = !everything;
        page.redraw();
    };
    return h("div", { class: "bar", key: "bar" },
        h("label", { class: "check" }, h("input", {
            type: "checkbox", id: "all", checked: all, disabled: !shown.length, onchange: chooseAll,
        }), none ? "Select all shown" : everything ? "All matching files" : `${count(chosen.size, "file")} selected`),
        all && page.data.older ? button(everything ? "Only those shown" : "Select all that match", everyone) : null,
        actions(...orders(page, shown, chosen, everything),
            live.status.queue.total
                ? button("Clear the queue…", async () => { if (await clearQueue()) page.load(); }, { class: "quiet" })
                : null));
}

/** Each order with the number of chosen files on which it has an effect; an order without any is not offered. */
function orders(page, shown, chosen, everything) {
    const rows = shown.filter((row) => chosen.has(row.job));
    return ORDERS.map(([order, verb]) => {
        const jobs = rows.filter((row) => row.actions.includes(order)).map((row) => row.job);
        if (!jobs.length) return null;
        const act = async () => {
            const wish = everything ? matching(page, order) : { jobs };
            // To the agent, no state means every state.
            const done = await onSelection(order, wish.states?.length === 0 ? { jobs } : wish);
            if (done) chosen.clear();
            page.load();
        };
        return button(everything ? `${verb} all…` : `${verb} ${number(jobs.length)}…`, act, { key: order });
    });
}

function list(page, chosen) {
    const jobs = page.data.jobs;
    if (!jobs) return muted("Loading…");
    if (!jobs.length) return muted(page.query.toString() ? "No matching files" : "No files yet");
    const columns = [["File"], ["Size", "number"], ["State"], ["Destinations"], ["Route"], ["Admitted"]];
    const rows = jobs.map((job) => ({
        key: job.job, class: chosen.has(job.job) ? "chosen" : null,
        cells: [
            h("div", { class: "pick" }, isReader() ? null : box(page, chosen, job), jobLink(job.job, job.path)),
            bytes(job.size),
            h("span", { title: MEANS[job.state] }, badge(job.state)), places(job), job.route ?? "–",
            when(job.admitted_at),
        ],
    }));
    return table(`${count(jobs.length, "file")}, newest first`, columns, rows, { class: "list" });
}

function box(page, chosen, job) {
    return h("input", {
        type: "checkbox", "aria-label": `Select job ${job.job}`, checked: chosen.has(job.job),
        onchange: (event) => {
            event.target.checked ? chosen.add(job.job) : chosen.delete(job.job);
            page.redraw();
        },
    });
}

/** Where the content of a file that was not sent is already. */
const held = ({ destination, key, same_as: first, url }) => h("li", { key: `same ${destination}` },
    "Already at ", h("strong", {}, destination), " as ", h("code", {}, name(key ?? url ?? "")), ", from ",
    // No stop of its own for the keys that go from file to file.
    h("a", { href: `#/files/${first}` }, `job ${first}`));

function places(job) {
    const links = job.deliveries.filter((delivery) => delivery.same_as != null);
    if (job.state === "duplicate" && links.length) {
        return [h("ul", { class: "plain" }, links.map(held)), fate(job)];
    }
    const why = job.reason ?? job.deliveries.find((delivery) => delivery.reason)?.reason;
    return [
        job.deliveries.length ? null : "none",
        h("ul", { class: "inline" }, job.deliveries.map(({ destination, state }) =>
            h("li", { key: destination }, destination, state === job.state ? null : ` ${state}`))),
        why ? h("p", { class: "small why" }, isolated(why)) : null,
        ANSWERED.includes(job.state) ? fate(job) : null,
    ];
}

/** What became of a source that was not sent, where that is more than nothing. */
const fate = ({ disposition }) => (disposition && disposition !== "kept" ? small(isolated(disposition)) : null);

function pager(page) {
    const { older } = page.data;
    const before = page.query.get("before");
    if (!older && !before) return null;
    return h("nav", { class: "pager", "aria-label": "Pages", key: "pager" },
        before ? button("Newest", () => page.setQuery({ before: "" })) : null,
        older ? button("Older", () => page.setQuery({ before: String(older) })) : null);
}
