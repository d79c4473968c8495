import { get } from "./api.js";
import { fragment, h } from "./dom.js";
import { live } from "./live.js";
import { onJob } from "./actions.js";
import { actions, badge, button, facts, name, progress, section, table, when } from "./parts.js";
import { bytes, clock, count, MEANS } from "./text.js";
import { eventText } from "./log.js";

export const story = {
    title: (page) => `Job ${page.id}`,
    load: async (page) => {
        try {
            page.data.story = await get(`jobs/${page.id}/story`);
        } catch (error) {
            // Forgotten meanwhile: what was known of it is no longer so.
            if (error.status === 404) page.data.story = null;
            throw error;
        }
    },
    // Of a part that arrived the stream tells nothing at this level; progress comes at most every five seconds.
    log: (page, event) => { if (String(event.job) === page.id) again(page); },
    status: (page) => { if (live.connection === "polling") again(page); },
    render: (page) => {
        const known = page.data.story;
        if (!known) return h("p", { class: "muted" }, page.error ? "" : "Reading…");
        const { job } = known;
        return fragment(head(page, job), moving(job), deliveries(known), events(known), parts(known), receipt(known));
    },
};

let timer = 0;

function again(page) {
    clearTimeout(timer);
    timer = setTimeout(() => page.open && page.load(), 300);
}

function head(page, job) {
    const act = (action) => async () => {
        const answer = await onJob(action, job);
        // Of what is forgotten there is nothing left to show.
        if (answer?.done && action === "forget") location.hash = "#/files";
        else if (answer) page.load();
    };
    const isOpen = job.state === "pending";
    const labels = Object.entries(job.labels || {}).map(([label, value]) => `${label}=${value}`).join(", ");
    return h("div", { class: "head", key: "head" },
        h("p", { class: "path" }, name(job.path)),
        facts([
            ["State", [badge(job.state), " ", h("span", { class: "small" }, MEANS[job.state])]],
            ["Why", job.reason ? h("bdi", {}, job.reason) : null], ["Code", job.code], ["Size", sized(job.size)],
            ["Route", job.route ? h("a", { href: `#/files?route=${encodeURIComponent(job.route)}` }, job.route) : null],
            ["Labels", labels ? h("bdi", {}, labels) : null], ["Taken in", when(job.admitted_at)],
            ["Ended", job.ended_at ? when(job.ended_at) : null], ["Finished", job.finished_at ? when(job.finished_at) : null],
            ["Source", job.disposition ? h("bdi", {}, job.disposition) : null], ["Batch", batch(job.batch)],
        ]),
        actions(
            button(isOpen ? "Try now…" : "Retry…", act("retry"), { disabled: ["delivered", "duplicate"].includes(job.state) }),
            button("Cancel…", act("cancel"), { disabled: !isOpen }), button("Forget…", act("forget"), { disabled: isOpen })),
        h("p", {}, h("a", { href: "#/files" }, "All files")));
}

const sized = (size) => `${bytes(size)}` + (size >= 1024 ? ` (${size.toLocaleString("en")} bytes)` : "");

function batch(batch) {
    if (!batch) return null;
    const counts = Object.entries(batch.files).map(([state, files]) => `${files} ${state}`).join(", ");
    return [
        h("a", { href: `#/files?batch=${batch.batch}` }, name(batch.name)), ` ${batch.state}`, counts ? `: ${counts}` : "",
    ];
}

function moving(job) {
    const running = (live.status.in_flight || []).filter((transfer) => transfer.job === job.job);
    if (!running.length) return null;
    return section("In flight", running.map((transfer) =>
        h("div", { key: transfer.destination }, h("strong", {}, transfer.destination), progress(transfer))));
}

function deliveries({ job, receipt }) {
    const columns = [["Destination"], ["State"], ["Attempts", "number"], ["Where", "where"], ["What is known"]];
    const rows = job.deliveries.map((delivery) => ({
        key: delivery.destination,
        cells: [
            h("a", { href: "#/destinations" }, delivery.destination), badge(delivery.state), delivery.attempts,
            where(delivery), known(delivery, inParts(job, receipt, delivery)),
        ],
    }));
    return section("Deliveries", rows.length
        ? table("One for each destination of the route", columns, rows, { hideCaption: true })
        : h("p", { class: "muted" }, "It goes nowhere."));
}

function where({ key, url }) {
    // Only what a browser opens as a page or a file; a destination may say anything.
    const isWeb = /^https?:\/\//i.test(url ?? "");
    return [
        key ? h("code", {}, name(key)) : "–",
        url ? h("p", { class: "small" }, isWeb
            ? h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, name(url)) : name(url)) : null,
    ];
}

/** A file that has arrived keeps no parts; its receipt tells how large they were. */
function inParts({ size }, receipt, { destination }) {
    const told = receipt?.deliveries?.find((delivery) => delivery.destination === destination);
    return told?.part_size ? `in ${count(Math.ceil(size / told.part_size), "part")} of up to ${bytes(told.part_size)}` : null;
}

function known(delivery, parts) {
    const details = Object.entries(delivery.details || {}).map(([key, value]) => `${key}: ${value}`);
    const lines = [
        delivery.reason ? [delivery.reason, delivery.code ? ` (${delivery.code})` : ""].join("") : null,
        delivery.verified ? `verified by ${delivery.verified}` : null, parts, delivery.etag ? `ETag ${delivery.etag}` : null,
        delivery.after ? `goes after ${delivery.after}` : null,
        delivery.next_at ? next(delivery.next_at) : null,
        ...details,
    ].filter(Boolean);
    return lines.length ? h("ul", { class: "plain" }, lines.map((line) => h("li", {}, h("bdi", {}, line)))) : "–";
}

const next = (time) => (new Date(time) > Date.now() ? `next try ${clock(time)}` : "may be tried now");

function events({ events, events_since }) {
    const note = events_since ? `What the agent remembers since ${clock(events_since)}.` : "";
    return section("What happened",
        events.length
            ? h("ol", { class: "latest" }, events.map((event) => h("li", { key: event.seq, class: event.level },
                when(event.ts), " ", eventText(event, "job", "path"))))
            : h("p", { class: "muted" }, "The agent remembers no event of it."),
        note ? h("p", { class: "small" }, note, " Older ones are in the log's own output.") : null);
}

function parts({ parts }) {
    if (!parts?.length) return null;
    const size = parts.reduce((sum, part) => sum + (part.size ?? 0), 0);
    const rows = parts.map((part) => ({
        key: `${part.destination} ${part.part}`,
        cells: [part.part, part.destination, bytes(part.size), h("code", {}, part.etag ?? "–")],
    }));
    return section("Parts that arrived", h("details", {}, h("summary", {}, `${count(parts.length, "part")}, ${bytes(size)}`),
        table("Parts", [["Part"], ["Destination"], ["Size", "number"], ["ETag"]], rows, { hideCaption: true })));
}

function receipt({ receipt }) {
    if (!receipt) return null;
    return section("Receipt", h("pre", { tabindex: 0, "aria-label": "Receipt" }, JSON.stringify(receipt, null, 2)));
}
