// The list of files.
import { clearQueue, onSelection } from "./actions.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { live } from "./live.js";
import {
    actions, badge, button, choice, field, isolated, isReader, jobLink, muted, searchBox, searchForm, setFilter, table,
    when,
} from "./parts.js";
import { MEANS, STATES } from "./states.js";

const PAGE = 50;
const FILTERS = ["state", "destination", "route", "q", "path", "batch"];
const SETS = [["failed,expired,rejected", "needs attention"], ["delivered,duplicate", "delivered or duplicate"]];

export const view = {
    load: async (page) => {
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
        const chosen = (page.data.chosen ??= new Set());
        return h("div", { key: "files" }, filters(page), selection(page, chosen), list(page, chosen), pager(page));
    },
};

const routes = new Set();
let timer = 0;

function again(page) {
    clearTimeout(timer);
    const wait = Math.max(0, Math.min(400, (page.data.asked ?? 0) + 2000 - Date.now()));
    timer = setTimeout(() => {
        page.data.asked = Date.now();
        if (page.open) page.load();
    }, wait);
}

function filters(page) {
    const value = (key) => page.query.get(key) ?? "";
    const props = (key) =>
        ({ id: key, value: value(key), onchange: (event) => setFilter(page, key, event.target.value) });
    const each = STATES.map((name) => [name, `${name} (${number(live.status.files[name])})`]);
    const states = [["", "all"], ...SETS, ...each];
    // Links may name other sets of states.
    if (!states.some(([state]) => state === value("state"))) states.push(value("state"));
    return searchForm("Files",
        field("Search", searchBox(page, { id: "q", placeholder: "part of the path" })),
        field("State", choice(props("state"), states)),
        field("Destination", choice(props("destination"),
            [["", "all"], ...live.status.destinations.map((place) => place.name)])),
        field("Route", h("input", { ...props("route"), list: "routes", autocomplete: "off" })),
        h("datalist", { id: "routes" }, [...routes].sort().map((value) => h("option", { value }))),
        FILTERS.some((key) => page.query.has(key))
            ? h("a", { href: "#/files", class: "clear" }, "Clear filters") : null);
}

function selection(page, chosen) {
    const shown = page.data.jobs ?? [];
    // Only rows on the screen: an action must not reach files that are no longer visible.
    for (const job of chosen) if (!shown.some((row) => row.job === job)) chosen.delete(job);
    if (isReader()) return null;
    const none = chosen.size === 0;
    const act = (text, action) => button(text, async () => {
        const done = await onSelection(action, { jobs: [...chosen] });
        if (done) chosen.clear();
        page.load();
    }, { disabled: none });
    const chooseAll = (event) => {
        chosen.clear();
        if (event.target.checked) for (const job of shown) chosen.add(job.job);
        page.redraw();
    };
    return h("div", { class: "bar", key: "bar" },
        h("label", { class: "check" }, h("input", {
            type: "checkbox", id: "all", checked: !none && chosen.size === shown.length, disabled: !shown.length,
            onchange: chooseAll,
        }), none ? "Select all shown" : `${count(chosen.size, "file")} selected`),
        actions(act("Retry…", "retry"), act("Cancel…", "cancel"), act("Forget…", "forget"),
            button("Clear the queue…", async () => { if (await clearQueue()) page.load(); }, { class: "quiet" })));
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

function places(job) {
    const why = job.reason ?? job.deliveries.find((delivery) => delivery.reason)?.reason;
    return [
        job.deliveries.length ? null : "none",
        h("ul", { class: "inline" }, job.deliveries.map(({ destination, state }) =>
            h("li", { key: destination }, destination, state === job.state ? null : ` ${state}`))),
        why ? h("p", { class: "small why" }, isolated(why)) : null,
    ];
}

function pager(page) {
    const { older } = page.data;
    const before = page.query.get("before");
    if (!older && !before) return null;
    return h("nav", { class: "pager", "aria-label": "Pages", key: "pager" },
        before ? button("Newest", () => page.setQuery({ before: "" })) : null,
        older ? button("Older", () => page.setQuery({ before: String(older) })) : null);
}
