// The overview: four answers for a first glance, then figures, transfers, rates and the latest files.
import { lift, onSelection, resume, resumeRoot } from "./actions.js";
import { get } from "./api.js";
import { fragment, h } from "./dom.js";
import { andMore, bytes, count, number, rate, span, took } from "./format.js";
import { graph, words } from "./graph.js";
import { balance, findings, needing, sentence } from "./health.js";
import { live, speed } from "./live.js";
import {
    actions, badge, button, filesLink, isolated, jobLink, muted, name, progress, section, small, table, when,
} from "./parts.js";

export const view = {
    // Events of an earlier agent are gone; its files are not.
    load: async (page) => { page.data.past = await get("jobs", { state: ENDED, limit: MOST }); },
    render: (page) => {
        const status = live.status;
        return fragment(first(status), figures(status), moving(status), latest(page.data.past ?? []), sent(),
            sum(status));
    },
};

/** The sentence, and the answers to the questions with which a person comes. */
function first(status) {
    const { tone, text } = sentence(status);
    return h("section", { class: `health ${tone}`, "aria-label": "Health", key: "health" },
        h("p", { class: "sentence" }, h("span", { class: "dot", "aria-hidden": "true" }), isolated(text)),
        h("div", { class: "answers" },
            answer("safe", "Is everything safe?", h("p", {}, isolated(status.health?.safety ?? text))),
            answer("needs", "What needs you?", needs(status)),
            answer("last", "What came last?", last(status)),
            answer("waits", "What waits?", waits(status))));
}

const answer = (kind, title, ...kids) => h("div", { class: kind, key: kind }, h("h2", {}, title), kids);

function needs(status) {
    const found = findings(status);
    const more = andMore(needing(status) - found.filter((finding) => finding.tone !== "neutral").length);
    const list = found.map((finding) => h("li", { class: finding.tone, key: finding.text },
        badge({ bad: "problem", waiting: "needs attention" }[finding.tone] ?? "note", finding.tone), " ",
        name(finding.text), finding.href ? [" ", h("a", { href: finding.href }, finding.link)] : null,
        small(isolated(finding.remedy)), actions(remedy(finding, status))));
    return [
        needing(status) ? null : h("p", {}, "Nothing."),
        list.length ? h("ul", {}, list, more ? h("li", { key: "more" }, more) : null) : null,
    ];
}

/** The button that may end a problem; null where only a person at another place can. */
function remedy({ tone, about, name: subject }, status) {
    if (tone === "neutral") return null;
    if (about === "files" && ["failed", "expired"].includes(subject)) {
        return button("Retry…", () => onSelection("retry", { states: [subject] }));
    }
    if (about === "destination" && subject) {
        const place = status.destinations.find((place) => place.name === subject);
        return button(place?.state === "paused" ? "Resume" : "Try now", () => resume(subject));
    }
    if (about === "limit") return button("Lift the limit", () => lift(subject ?? null));
    const root = about === "root" ? status.roots.find((root) => root.path === subject) : null;
    return root?.state.startsWith("paused") && !root.place ? button("Resume…", () => resumeRoot(root)) : null;
}

function last({ last_file: file }) {
    if (!file) return h("p", {}, "No file yet.");
    const parts = file.path.split("/");
    const base = parts.pop();
    return h("p", {}, jobLink(file.job, base), " in ", name(parts.join("/") || "/"), ", ", when(file.at, true));
}

const MOST_FOLDERS = 6;

/** Each wait with its reason and its end, and since when folders have been quiet. */
function waits({ destinations, windows, queue, roots }) {
    const shut = queue.waiting ? (windows ?? []).filter((window) => !window.open) : [];
    const lines = [
        ...destinations.filter((place) => place.standing).map((place) =>
            ["to " + place.name, [h("a", { href: "#/destinations" }, place.name), ": ", isolated(place.standing)]]),
        ...shut.map((window) => ["route " + window.route,
            [`Route ${window.route}: its window opens `, when(window.next_change, true)]]),
        queue.held ? ["held", `${count(queue.held, "delivery waits", "deliveries wait")} for other files`] : null,
        ...roots.filter((root) => root.settling).map((root) => ["settling " + root.path,
            [name(root.path), `: ${count(root.settling, "file is", "files are")} not complete yet`]]),
    ].filter(Boolean);
    const folders = [...roots].sort((one, other) => !!other.quiet_since - !!one.quiet_since);
    return h("ul", {},
        lines.length ? lines.map(([key, line]) => h("li", { key }, line)) : h("li", { key: "none" }, "Nothing waits."),
        folders.slice(0, MOST_FOLDERS).map((root) => h("li", { key: "in " + root.path }, folder(root))),
        folders.length > MOST_FOLDERS ? h("li", { key: "more" }, andMore(folders.length - MOST_FOLDERS)) : null);
}

function folder({ path, quiet_since: quiet, last_file_at: came }) {
    const link = h("a", { href: "#/roots" }, name(path));
    if (quiet) return [link, " ", badge("quiet", "waiting"), " since ", when(quiet), ", ", when(quiet, true)];
    return [link, came ? [": last file ", when(came, true)] : ": no file yet"];
}

/** The present rate of all transfers, or of the last ten seconds where a transfer cannot be measured. */
function pace(transfers) {
    const paces = transfers.filter((transfer) => !transfer.next_look).map(speed);
    return paces.length && !paces.includes(null) ? paces.reduce((sum, one) => sum + one) : live.rates?.total.at(-1);
}

function figures({ queue, files, bytes: sizes, in_flight }) {
    const now = pace(in_flight ?? []);
    const entry = (title, value, note, states) => h("div", { key: title },
        h("dt", {}, states ? h("a", { href: `#/files?state=${states}` }, title) : title), h("dd", {}, value),
        h("dd", { class: "small" }, note));
    const held = [
        queue.retrying ? `${number(queue.retrying)} retrying` : null,
        queue.held ? `${number(queue.held)} held for other files` : null,
    ].filter(Boolean).join(", ");
    return h("dl", { class: "figures", key: "figures" },
        entry("Transfers", number(queue.in_flight), now === undefined ? "running" : `${rate(now, true)} now`),
        entry("Waiting", number(queue.waiting + queue.held), held || "deliveries", "pending"),
        entry("Failed", number(queue.failed + queue.expired),
            queue.expired ? `${number(queue.expired)} of them expired` : "files", "failed,expired"),
        entry("Longest wait", oldest(queue), queue.oldest_waiting ? "oldest file in the queue" : "no files waiting"),
        entry("Delivered", number(files.delivered), bytes(sizes.delivered), "delivered"));
}

function oldest(queue) {
    if (!queue.oldest_waiting) return "–";
    // By the agent's clock until its last status, and by the browser's since then.
    return span((queue.oldest_waiting_ms ?? 0) + Math.max(0, Date.now() - live.statusAt));
}

function moving({ in_flight: all }) {
    if (!all?.length) return section("Transfers", muted("No transfers now"));
    const columns = [["File"], ["To"], ["Progress", "bars"]];
    const rows = all.slice(0, 12).map((transfer) => ({
        key: `${transfer.job} ${transfer.destination}`,
        cells: [
            jobLink(transfer.job, transfer.path), h("a", { href: "#/destinations" }, transfer.destination),
            progress(transfer),
        ],
    }));
    const more = andMore(all.length - rows.length);
    return section("Transfers",
        table("Running transfers", columns, rows, { hideCaption: true, class: "moving" }),
        more ? small(more) : null);
}

function sent() {
    const rates = live.rates;
    if (!rates?.total?.length) return section("Rate in the last hour", muted("No data yet"));
    const places = Object.entries(rates.destinations ?? {});
    return section("Rate in the last hour", graph(rates), places.length
        ? h("details", {}, h("summary", {}, "By destination"), h("ul", {}, places.map(([place, points]) =>
            h("li", { key: place }, h("strong", {}, place), ": ", words(points, rates)))))
        : null);
}

/** How a file ends at a destination, and what then stands in its line. */
const ENDS = {
    "job.delivered": ({ size, duration_ms, verified }) =>
        [bytes(size), duration_ms === undefined ? null : took(duration_ms), PROOFS[verified] ?? "proved"],
    "job.failed": ({ state, reason }) => [badge(state), isolated(reason)],
    "job.duplicate": () => ["is there already"],
    "file.rejected": ({ reason }) => [badge("rejected"), isolated(reason)],
};
const PROOFS = {
    size: "sizes equal", carried: "went along", registered: "registered", adopted: "was there already",
};

const MOST = 8;
const ENDED = "delivered,duplicate,failed,expired,rejected";

/** One line a file, whatever happened on its way; files of an earlier agent fill the list. */
function latest(past) {
    const lines = new Map();
    for (const event of [...live.events].reverse()) {
        const end = ENDS[event.event];
        if (!end || event.job === undefined) continue;
        const known = lines.get(event.job);
        // Its newest end counts; destinations at which it ended alike share the line.
        if (known ? known.event.event !== event.event : lines.size >= MOST) continue;
        const line = known ?? { event, places: new Set(), facts: end(event).filter(Boolean) };
        for (const place of event.destinations ?? [event.destination].filter(Boolean)) line.places.add(place);
        lines.set(event.job, line);
    }
    for (const job of past) {
        if (lines.size >= MOST) break;
        if (!lines.has(job.job)) lines.set(job.job, ended(job));
    }
    if (!lines.size) return null;
    return section("Latest",
        h("ul", { class: "latest" }, [...lines].map(([key, { event, places, facts }]) =>
            h("li", { key, class: event.level }, when(event.ts), " ", jobLink(event.job, event.path.split("/").at(-1)),
                places.size ? ` → ${[...places].reverse().join(", ")}` : "", facts.map((fact) => [" · ", fact])))),
        small(h("a", { href: "#/log" }, "Show the log")));
}

/** The line of a file whose events are no longer in memory. */
function ended({ job, path, size, state, reason, ended_at: ts, deliveries }) {
    const isGood = ["delivered", "duplicate"].includes(state);
    return {
        event: { job, path, ts, level: isGood ? "info" : "warning" },
        places: new Set(deliveries.map((delivery) => delivery.destination)),
        facts: isGood ? [bytes(size), badge(state)] : [badge(state), reason ? isolated(reason) : null].filter(Boolean),
    };
}

function sum(status) {
    const { terms, sum, holds } = balance(status);
    const term = ([state, files], index) => {
        const text = `${number(files)} ${state}`;
        const link = state === "ignored" ? h("a", { href: "#/roots" }, text) : filesLink("state", state, text);
        return [index ? " + " : "", link];
    };
    return section("Balance",
        h("p", { class: "balance" }, h("strong", {}, count(status.seen, "file")), " seen = ",
            terms.length ? terms.map(term) : "none yet"),
        holds ? null : h("p", { class: "fault" }, `Please report this: the states add up to ${count(sum, "file")}.`));
}
