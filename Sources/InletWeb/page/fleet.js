// The agents of the fleet, and which machine has a file. All text of other agents is text: never a link, never markup.
import { orderAgent } from "./actions.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { andMore, bytes, count, number, rate } from "./format.js";
import { live } from "./live.js";
import {
    actions, badge, button, facts, field, isolated, muted, name, reading, searchBox, searchForm, section, small, table,
    texts, when,
} from "./parts.js";

/** The time between two readings while the view is open, in milliseconds. */
const PACE = 5000;
const MOST_PROBLEMS = 3;
/** Longer text of other agents is cut. */
const LONGEST = 300;

const HEALTH = {
    ok: ["well", "good"], attention: ["needs attention", "waiting"], degraded: ["needs attention", "waiting"],
    trouble: ["in trouble", "bad"], failing: ["in trouble", "bad"],
};
const STATES = {
    live: ["live", "good"], connecting: ["connecting", "waiting"], confirming: ["confirming", "waiting"],
    away: ["PostgreSQL is away", "bad"], recovering: ["recovering", "waiting"], refused: ["refused", "bad"],
};

export const view = {
    load: async (page) => {
        await Promise.all([read(page), find(page)]);
    },
    // The status of an idle agent does not change, the others' may.
    drawn: (page) => {
        page.data.timer ??= setInterval(() => {
            if (!page.open) clearInterval(page.data.timer);
            // A failure shows in the banner, and the next reading tries again.
            else if (live.status?.fleet) read(page).then(page.redraw, () => {});
        }, PACE);
    },
    render: (page) => {
        if (!live.status.fleet) return muted("Set fleet in the configuration: this agent is in no fleet.");
        const known = page.data.fleet;
        return h("div", { key: "fleet" }, own(live.status.fleet),
            known ? [shares(known), agents(known)] : reading(page), search(page));
    },
};

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

async function read(page) {
    const fleet = await get("fleet");
    page.data.fleet = fleet;
}

/** This agent's standing. */
function own(fleet) {
    return section("This agent",
        h("p", {}, badge(...(STATES[fleet.state] ?? [fleet.state, "bad"])),
            fleet.since ? [" since ", when(fleet.since)] : null),
        fleet.message ? h("p", { class: "why" }, isolated(cut(fleet.message))) : null,
        facts([
            ["Name", name(fleet.name)], ["Fleet", fleet.fleet ? name(fleet.fleet) : null], ["Tag", fleet.tag],
            ["Server", name(fleet.server)],
            ["Draining", fleet.is_draining ? "new files stay in their folders until 'inlet fleet undrain'" : null],
            ["Files", fleet.waiting_keys ? `${count(fleet.waiting_keys, "file waits", "files wait")} for a key` : null],
            ["Keys", `${number(fleet.reserved_keys)} given, ${number(fleet.lost_keys)} taken by others, `
                + `${number(fleet.tagged_keys)} tagged since the start`],
            ["Receipts", fleet.receipts_behind ? `${number(fleet.receipts_behind)} not published yet` : null],
            ...fleet.shares.map((share) => [`Part of ${share.destination}`, part(share)]),
        ]));
}

function part({ rate: most, slots, is_assumed }) {
    const words = [most == null ? null : rate(most), slots == null ? null : count(slots, "transfer")].filter(Boolean);
    return words.join(", ") + (is_assumed ? " (assumed: PostgreSQL is away)" : "");
}

/** The folders that several agents watch; nothing without one. */
function shares(fleet) {
    if (!fleet.places.length) return null;
    const columns = [
        ["Share"], ["Listed by"], ["Since"], ["Members"], ["Waiting", "number"], ["Taken", "number"],
        ["Problems", "where"],
    ];
    const rows = fleet.places.map((place) => ({
        key: place.name,
        cells: [
            [name(cut(place.name)), place.root ? small(name(cut(place.root))) : null],
            place.is_held ? name(cut(place.holder ?? "–")) : badge("nobody", "bad"),
            place.is_held && place.held_since ? when(place.held_since, true) : "–",
            place.members.length ? name(cut(place.members.join(", "))) : "–",
            number(place.waiting), number(place.claimed),
            place.problems.length ? texts(place.problems.map(cut), "plain") : "none",
        ],
    }));
    return section("Shares", table(count(rows.length, "share"), columns, rows));
}

function agents(fleet) {
    const columns = [["Agent"], ["State"], ["Report"], ["Queue"], ["Rate", "number"], ["Problems", "where"]];
    const rows = fleet.agents.map((agent) => ({ key: agent.name, cells: cells(agent, fleet) }));
    return section("Agents",
        rows.length ? table(count(rows.length, "agent"), columns, rows, { class: "list" })
            : muted("No agents known yet"),
        fleet.agents_at ? small("As of ", when(fleet.agents_at), ".") : null);
}

function cells(agent, fleet) {
    const { activity } = agent;
    return [
        details(agent, fleet), state(agent, fleet), agent.reported_at ? when(agent.reported_at, true) : "none yet",
        activity ? queue(activity) : "–", activity ? rate(activity.rate) : "–", problems(activity),
    ];
}

/** Opens with Enter, like the entries of the other lists. */
function details(agent, fleet) {
    const { activity } = agent;
    const places = (activity?.destinations ?? []).map((place) => cut(
        `${place.name} (${place.type}): ${place.state}, ${number(place.waiting)} waiting`
        + (place.error ? `; ${place.error}` : "")));
    return h("details", {},
        h("summary", { "data-go": "" }, name(cut(agent.name)), agent.is_self ? " (this agent)" : null),
        facts([
            ["Version", isolated(agent.version)], ["Last seen", agent.last_seen ? when(agent.last_seen, true) : null],
            ["30 days", activity ? `${number(activity.delivered)} delivered, ${number(activity.failed)} failed` : null],
            ["Oldest file", activity?.oldest ? when(activity.oldest, true) : null],
            ["Last error", activity?.last_error ? isolated(cut(activity.last_error)) : null],
        ]),
        places.length ? texts(places) : null,
        fleet.may_order && ["active", "draining"].includes(agent.state) ? orders(agent) : null);
}

function orders({ name: agent, state: standing }) {
    return actions(
        button("Pause…", () => orderAgent("pause", agent)), button("Resume", () => orderAgent("resume", agent)),
        button("Rescan", () => orderAgent("rescan", agent)),
        standing === "draining" ? button("Undrain", () => orderAgent("undrain", agent))
            : button("Drain…", () => orderAgent("drain", agent)));
}

/** The state in words. An agent that does not answer has no health. */
function state(agent, fleet) {
    const since = agent.last_seen ? [" since ", when(agent.last_seen, true)] : null;
    if (agent.state === "retired") return badge("retired", "neutral");
    if (agent.state === "missing") return [badge("missing", "bad"), " the database no longer knows it"];
    if (!agent.is_alive) return [badge("silent", "bad"), since];
    if (!agent.has_reported && fleet.state === "recovering") return badge("has not reported", "waiting");
    const health = agent.activity ? HEALTH[agent.activity.state] ?? ["not known", "neutral"] : ["alive", "neutral"];
    return [badge(...health), agent.state === "draining" ? [" ", badge("draining", "waiting")] : null];
}

function queue({ waiting, in_flight, retrying, held, parked }) {
    const parts = [
        `${number(waiting)} waiting`, in_flight ? `${number(in_flight)} in transfer` : null,
        retrying ? `${number(retrying)} retrying` : null, held ? `${number(held)} held` : null,
        parked ? `${number(parked)} without a destination` : null,
    ];
    return parts.filter(Boolean).join(", ");
}

function problems(activity) {
    if (!activity) return "–";
    const failed = activity.failed ? [`${count(activity.failed, "file")} failed in 30 days`] : [];
    const all = [...activity.problems, ...failed];
    if (!all.length) return "none";
    const more = andMore(all.length - MOST_PROBLEMS);
    return [texts(all.slice(0, MOST_PROBLEMS).map(cut), "plain"), more ? small(more) : null];
}

/** Reads the receipts for the text in the address. */
async function find(page) {
    const text = page.query.get("q");
    if (text === (page.data.found?.text ?? null)) return;
    page.data.found = null;
    if (!text) return;
    try {
        const receipts = await get("fleet/search", { q: text });
        // A slow answer to an earlier text.
        if (text === page.query.get("q")) page.data.found = { text, receipts };
    } catch (error) {
        if (text === page.query.get("q")) page.data.found = { text, fault: error.message };
    }
}

function search(page) {
    const { found } = page.data;
    return section("Which machine has my file?",
        searchForm("Search the fleet", field("Name, beginning of a key, or SHA-256",
            searchBox(page, { id: "q", spellcheck: "false" }), "grow")),
        h("div", { role: "status", key: "found" }, found ? results(found)
            : muted(page.query.get("q") ? "Looking…" : "Searches the receipts of all agents.")));
}

function results({ text, receipts, fault }) {
    if (fault) return h("p", { class: "banner bad" }, fault);
    if (!receipts.length) return muted("No receipts match ", name(cut(text)));
    const columns = [["File"], ["Agent"], ["Destination"], ["Key"], ["State"], ["Size", "number"], ["When"]];
    const rows = receipts.map((receipt, index) => ({
        key: `${index} ${receipt.at} ${receipt.agent}`,
        cells: [
            name(cut([receipt.root, receipt.path].filter(Boolean).join("/"))), name(cut(receipt.agent)),
            receipt.destination ? name(cut(receipt.destination)) : "–",
            receipt.key ? h("code", {}, name(cut(receipt.key))) : "–", badge(receipt.state), bytes(receipt.size),
            when(receipt.at),
        ],
    }));
    return table(count(rows.length, "receipt"), columns, rows);
}
