import { get } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import { clearQueue, onSelection } from "./actions.js";
import { actions, badge, button, jobLink, table, when } from "./parts.js";
import { bytes, count, MEANS, STATES } from "./text.js";

const PAGE = 50;
const FILTERS = ["state", "destination", "route", "q", "path", "batch"];
const SETS = [["failed,expired,rejected", "needs you"], ["delivered,duplicate", "where it belongs"]];

export const files = {
    title: () => "Files",
    load: async (page) => {
        const given = Object.fromEntries(FILTERS.map((key) => [key, page.query.get(key)]));
        const asked = page.query.toString();
        const jobs = await get("jobs", { ...given, before: page.query.get("before"), limit: PAGE + 1 });
        // A slow answer to an older question.
        if (asked !== page.query.toString()) return;
        page.data.jobs = jobs.slice(0, PAGE);
        page.data.older = jobs.length > PAGE ? jobs[PAGE - 1].job : null;
        for (const job of jobs) if (job.route) routes.add(job.route);
    },
    // Files come and go one by one in the log; the list is asked for once for many of them.
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
    const set = (key) => (event) => page.setQuery({ [key]: event.target.value, before: "", find: "" });
    const option = (value, text) => h("option", { value }, text);
    const state = value("state");
    const known = [...STATES, ...SETS.map(([states]) => states), ""].includes(state);
    let typing = 0;
    const search = (event) => {
        clearTimeout(typing);
        typing = setTimeout(() => page.open && set("q")(event), 250);
    };
    return h("form", { class: "filters", role: "search", "aria-label": "Files", onsubmit: (event) => event.preventDefault() },
        field("Search", h("input", {
            type: "search", id: "q", value: value("q"), oninput: search, "data-search": true, autocomplete: "off",
            placeholder: "part of the path",
        }), "q"),
        field("State", h("select", { id: "state", value: state, onchange: set("state") }, option("", "all"),
            SETS.map(([states, text]) => option(states, text)),
            STATES.map((name) => option(name, `${name} (${live.status.files[name] ?? 0})`)),
            known ? null : option(state, state)), "state"),
        field("Destination", h("select", { id: "destination", value: value("destination"), onchange: set("destination") },
            option("", "all"), live.status.destinations.map((place) => option(place.name, place.name))), "destination"),
        field("Route", h("input", {
            id: "route", list: "routes", value: value("route"), onchange: set("route"), autocomplete: "off",
        }), "route"),
        h("datalist", { id: "routes" }, [...routes].sort().map((route) => option(route))),
        FILTERS.some((key) => page.query.has(key)) ? h("a", { href: "#/files", class: "clear" }, "Show all") : null);
}

const field = (title, control, id) => h("div", { key: id }, h("label", { for: id }, title), control);

function selection(page, chosen) {
    const shown = page.data.jobs ?? [];
    // Only what is on the screen: nobody acts on what they no longer see.
    for (const job of chosen) if (!shown.some((row) => row.job === job)) chosen.delete(job);
    if (live.session?.access === "read") return null;
    const act = (action) => async () => {
        const done = await onSelection(action, { jobs: [...chosen] });
        if (done) chosen.clear();
        page.load();
    };
    const none = chosen.size === 0;
    const all = !none && chosen.size === shown.length;
    return h("div", { class: "bar", key: "bar" },
        h("label", { class: "check" }, h("input", {
            type: "checkbox", id: "all", checked: all, disabled: !shown.length,
            onchange: (event) => {
                chosen.clear();
                if (event.target.checked) for (const job of shown) chosen.add(job.job);
                page.redraw();
            },
        }), none ? "Select all shown" : `${count(chosen.size, "file")} selected`),
        actions(button("Retry…", act("retry"), { disabled: none }), button("Cancel…", act("cancel"), { disabled: none }),
            button("Forget…", act("forget"), { disabled: none }),
            button("Clear the queue…", async () => { if (await clearQueue()) page.load(); }, { class: "quiet" })));
}

function list(page, chosen) {
    const jobs = page.data.jobs;
    if (!jobs) return h("p", { class: "muted" }, "Reading…");
    if (!jobs.length) return h("p", { class: "muted" }, page.query.toString() ? "No file is so." : "No file has been taken in yet.");
    const isReader = live.session?.access === "read";
    const columns = [["File"], ["Size", "number"], ["State"], ["Destinations"], ["Route"], ["Taken in"]];
    const rows = jobs.map((job) => ({
        key: job.job, class: chosen.has(job.job) ? "chosen" : null,
        cells: [
            h("div", { class: "pick" }, isReader ? null : box(page, chosen, job), jobLink(job.job, job.path)),
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
        h("ul", { class: "inline" }, job.deliveries.map((delivery) =>
            h("li", { key: delivery.destination },
                delivery.destination, delivery.state === job.state ? null : ` ${delivery.state}`))),
        why ? h("p", { class: "small why" }, h("bdi", {}, why)) : null,
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
