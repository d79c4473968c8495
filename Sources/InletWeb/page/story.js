// One file: its state, what happened to it, its deliveries, parts and receipt.
import { onJob, ORDERS } from "./actions.js";
import { get } from "./api.js";
import { debounced, fragment, h } from "./dom.js";
import { bytes, clock, count, number } from "./format.js";
import { live } from "./live.js";
import { eventText } from "./log.js";
import {
    actions, badge, button, facts, filesLink, isolated, muted, name, progress, reading, section, small, table, texts,
    when,
} from "./parts.js";
import { MEANS } from "./states.js";

/** A view without a link of its own: `#/files/17`. */
export const view = {
    load: async (page) => {
        try {
            page.data.story = await get(`jobs/${page.id}/story`);
        } catch (error) {
            // Forgotten meanwhile: the old data no longer holds.
            if (error.status === 404) page.data.story = null;
            throw error;
        }
    },
    // At this level the stream does not report parts; progress comes at most every 5 s.
    log: (page, event) => { if (String(event.job) === page.id) again(page); },
    status: (page) => { if (live.connection === "polling") again(page); },
    render: (page) => {
        const known = page.data.story;
        if (!known) return reading(page);
        const hasPicture = known.thumbnail && page.data.bare !== known.job.job;
        return fragment(head(page, known.job, hasPicture), moving(known.job), timeline(known), deliveries(known),
            events(known), parts(known.parts), receipt(known));
    },
};

const again = debounced(300, (page) => page.open && page.load());

function head(page, job, hasPicture) {
    const act = (action) => async () => {
        const answer = await onJob(action, job);
        // A forgotten file has nothing left to show.
        if (answer?.done && action === "forget") location.hash = "#/files";
        else if (answer) page.load();
    };
    const isOpen = job.state === "pending";
    // The agent says what has an effect now.
    const order = ([order, verb]) => (job.actions?.includes(order)
        ? button(`${order === "retry" && isOpen ? "Try now" : verb}…`, act(order), { key: order }) : null);
    const labels = Object.entries(job.labels ?? {}).map(([label, value]) => `${label}=${value}`).join(", ");
    return h("div", { class: "head", key: "head" },
        hasPicture ? h("img", {
            class: "thumbnail", src: `/api/v1/jobs/${job.job}/thumbnail`, alt: "", onerror: () => {
                // Most JPEG files have one; the others are shown without.
                page.data.bare = job.job;
                page.redraw();
            },
        }) : null,
        h("p", { class: "path" }, name(job.path)),
        facts([
            ["State", [badge(job.state), " ", h("span", { class: "small" }, MEANS[job.state])]],
            ["Why", isolated(job.reason)], ["Code", job.code], ["Size", size(job.size)],
            ["Route", job.route ? filesLink("route", job.route, job.route) : null],
            ["Labels", isolated(labels)], ["Admitted", when(job.admitted_at)],
            ["Ended", job.ended_at ? when(job.ended_at) : null],
            ["Finished", job.finished_at ? when(job.finished_at) : null],
            ["Source", isolated(job.disposition)], ["Batch", batch(job.batch)],
        ]),
        actions(...ORDERS.map(order)),
        h("p", {}, h("a", { href: "#/files" }, "All files")));
}

const size = (size) => bytes(size) + (size >= 1024 ? ` (${number(size)} bytes)` : "");

function batch(batch) {
    if (!batch) return null;
    const counts = Object.entries(batch.files).map(([state, files]) => `${number(files)} ${state}`).join(", ");
    return [filesLink("batch", batch.batch, name(batch.name)), ` ${batch.state}`, counts ? `: ${counts}` : ""];
}

function moving(job) {
    const running = (live.status.in_flight ?? []).filter((transfer) => transfer.job === job.job);
    if (!running.length) return null;
    return section("Transfers", running.map((transfer) =>
        h("div", { key: transfer.destination }, h("strong", {}, transfer.destination), progress(transfer))));
}

/** What a proof says, in words; the word of the API where it is another one. */
const PROOFS = {
    md5_parts: "the MD5 of every part", checksum: "a checksum that the store compared", size: "its length only",
    read_back: "reading it back", sha256: "its SHA-256", registered: "the service's record of it",
    carried: "its main file, which it went with", adopted: "the configuration: it was there before",
};

const by = (verified) => PROOFS[verified] ?? verified;

/** What happened, in its order: by the journal, and by the events in memory about attempts in between. */
function timeline({ job, events, receipt }) {
    const steps = [
        { time: job.admitted_at, what: "Complete, and admitted" + (job.route ? ` by route ${job.route}` : "") },
        ...job.deliveries.flatMap((delivery) => attempts(delivery, events)),
        ...(job.state === "rejected" ? [{ time: job.ended_at, what: "Rejected", why: job.reason, tone: "bad" }] : []),
        { time: job.finished_at, what: "Source", why: job.disposition },
        { time: receipt && job.finished_at, what: "Receipt written" },
    ];
    // Steps of one time stay in this order.
    const known = steps.filter(({ time }) => time).sort((a, b) => new Date(a.time) - new Date(b.time));
    // First whatever the clock of its writer says.
    const all = job.modified_at ? [{ time: job.modified_at, what: "Written last" }, ...known] : known;
    return section("What happened", h("ol", { class: "timeline" }, all.map(step)));
}

const step = ({ time, what, why, url, tone }, index) => h("li", { key: index, class: tone },
    when(time), " ", h("strong", {}, what), why ? [": ", isolated(why)] : null,
    isWeb(url) ? [" ", leaving(url, "Open the result")] : null);

/** The attempts of a delivery and its end. */
function attempts(delivery, events) {
    const { destination, state, started_at: started, ended_at: ended, reason, same_as: first, verified } = delivery;
    const own = events.filter((event) => event.destination === destination);
    const begun = own.filter((event) => event.event === "job.started" && event.level !== "debug");
    const retries = own.filter((event) => event.event === "job.retry");
    const steps = [
        ...begun.map((event) => ({ time: event.ts, what: `Attempt ${event.attempt} to ${destination}` })),
        ...retries.map((event) => ({ time: event.ts, what: `${destination}`, why: event.reason, tone: "bad" })),
    ];
    // Events are forgotten; the first attempt is in the journal.
    if (!begun.length && started) steps.push({ time: started, what: `First attempt to ${destination}` });
    if (!ended) return steps;
    if (state !== "delivered") {
        return [...steps, { time: ended, what: `${destination} ${state}`, why: reason, tone: "bad" }];
    }
    const what = first == null ? `Delivered to ${destination}` : `Already at ${destination}, from job ${first}`;
    return [...steps, { time: ended, what, why: `proved by ${by(verified)}`, url: delivery.url, tone: "good" }];
}

function deliveries({ job, receipt }) {
    const columns = [["Destination"], ["State"], ["Attempts", "number"], ["Location", "where"], ["Details"]];
    const rows = job.deliveries.map((delivery) => ({
        key: delivery.destination,
        cells: [
            h("a", { href: "#/destinations" }, delivery.destination), badge(delivery.state), number(delivery.attempts),
            where(delivery), known(delivery, inParts(job, receipt, delivery)),
        ],
    }));
    return section("Deliveries", rows.length
        ? table("Deliveries by destination", columns, rows, { hideCaption: true })
        : muted("No destinations"));
}

const leaving = (href, text) => h("a", { href, rel: "noopener noreferrer", target: "_blank" }, text);

/** Links to web addresses only: a destination may send anything as its URL. */
const isWeb = (url) => /^https?:\/\//i.test(url ?? "");

function where({ key, url }) {
    return [
        key ? h("code", {}, name(key)) : "–", url ? small(isWeb(url) ? leaving(url, name(url)) : name(url)) : null,
    ];
}

/** The journal keeps no parts of a delivered file, but its receipt has their size. */
function inParts({ size }, receipt, { destination }) {
    const proved = receipt?.deliveries?.find((delivery) => delivery.destination === destination);
    if (!proved?.part_size) return null;
    return `in ${count(Math.ceil(size / proved.part_size), "part")} of up to ${bytes(proved.part_size)}`;
}

function known(delivery, parts) {
    const { reason, code, verified, etag, after, next_at: next, details } = delivery;
    const lines = [
        reason ? reason + (code ? ` (${code})` : "") : null,
        verified ? `verified by ${verified}: ${by(verified)}` : null, parts, etag ? `ETag ${etag}` : null,
        after ? `after ${after}` : null,
        next ? (new Date(next) > Date.now() ? `next try ${clock(next)}` : "next try now") : null,
        ...Object.entries(details ?? {}).map(([key, value]) => `${key}: ${value}`),
    ].filter(Boolean);
    return lines.length ? texts(lines, "plain") : "–";
}

function events({ events, events_since: since }) {
    return section("Events",
        events.length
            ? h("ol", { class: "latest" }, events.map((event) =>
                h("li", { key: event.seq, class: event.level },
                    when(event.ts), " ", eventText(event, "job", "path"))))
            : muted("No events in memory"),
        since
            ? small(`Events since ${clock(since)}. For older ones, see the agent's log.`) : null);
}

function parts(parts) {
    if (!parts?.length) return null;
    const total = parts.reduce((sum, part) => sum + (part.size ?? 0), 0);
    const columns = [["Part"], ["Destination"], ["Size", "number"], ["ETag"]];
    const rows = parts.map((part) => ({
        key: `${part.destination} ${part.part}`,
        cells: [part.part, part.destination, bytes(part.size), h("code", {}, part.etag ?? "–")],
    }));
    return section("Uploaded parts", h("details", {},
        h("summary", {}, `${count(parts.length, "part")}, ${bytes(total)}`),
        table("Parts", columns, rows, { hideCaption: true })));
}

function receipt({ job, receipt }) {
    if (!receipt) return null;
    const text = JSON.stringify(receipt, null, 2);
    return section("Receipt",
        h("p", {}, button("Save receipt", () => save(`inlet-receipt-${job.job}.json`, text + "\n"))),
        h("pre", { tabindex: 0, "aria-label": "Receipt" }, text));
}

/** Gives the browser a file to save. */
function save(file, text) {
    const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    h("a", { href, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
}
