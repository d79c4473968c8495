// The cards in the readers, whether they may be taken out, and the history of all cards.
import { attempt } from "./actions.js";
import { get, post } from "./api.js";
import { debounced, fragment, h } from "./dom.js";
import { bytes, count, number, span } from "./format.js";
import { live } from "./live.js";
import {
    actions, badge, button, canAct, facts, isolated, isReader, muted, name, section, small, table, when,
} from "./parts.js";
import { askForCards, distrust, told } from "./told.js";
import { cardTone, content, copied, lines, verdict, wordTone } from "./verdict.js";

/** Between two questions while a card is in a reader, in milliseconds. */
const PAUSE = 3000;
/** An eject waits for running copies and for the disk. */
const EJECT = 90000;
const STEPS = [25, 200, 1000];
const LABELS = [["roll", "Roll"], ["camera", "Camera"], ["operator", "Operator"], ["note", "Note"]];
const OTHERS = {
    outside: "outside the watched folder", unrouted: "no route takes them", irregular: "no regular files",
};

export const view = {
    load: async (page) => {
        await Promise.all([look(page), readHistory(page)]);
    },
    status: (page) => {
        look(page);
    },
    log: (page, { event }) => {
        if (/^(card|volume)\./.test(event)) refresh(page);
    },
    render: (page) => fragment(readers(page), history(page)),
};

/** A person's work in the view, by stay: typed names, opened forms, their number of saves, running orders. */
function own({ data }) {
    for (const key of ["drafts", "opened", "saved", "busy"]) data[key] ??= {};
    return data;
}

const refresh = debounced(300, (page) => page.open && page.load());

/** Asks for the cards; while one is in a reader, again and again. */
async function look(page) {
    if (page.data.asking) return;
    clearTimeout(page.data.next);
    page.data.asking = true;
    try {
        await askForCards();
        page.data.fault = null;
    } catch (error) {
        page.data.fault = error;
    }
    page.data.asking = false;
    if (!page.open) return;
    if (told.report?.cards.length && !["resting", "out"].includes(live.connection)) {
        page.data.next = setTimeout(() => page.open && look(page), PAUSE);
    }
    page.redraw();
}

async function readHistory(page) {
    page.data.limit ??= STEPS[0];
    page.data.stays = await get("cards/history", { card: page.query.get("card"), limit: page.data.limit });
}

function readers(page) {
    const { report } = told;
    if (!report) return page.data.fault ? alarm(page.data.fault.message) : muted("Loading…");
    const { cards: all, patterns, missing_rolls: missing } = report;
    const gap = missing.length ? banner("waiting", `Check your cards: none was named ${missing.join(", ")}.`) : null;
    if (!all.length) return fragment(gap, section("Readers", patterns.length ? none(patterns) : unconfigured()));
    const why = distrust();
    return fragment(why ? alarm(`${why}: trust nothing here`) : null, gap,
        h("ul", { class: "cards readers", key: "readers" }, all.map((card) => tile(page, card))));
}

const banner = (tone, text) => h("p", { class: `banner ${tone}`, key: tone }, text);

const alarm = (text) => h("div", { role: "alert", key: "alarm" }, banner("bad", text));

function none(patterns) {
    const places = patterns.map((path, index) => [index ? ", " : "", h("code", {}, name(path))]);
    return [h("p", {}, "No card is in a reader."), small("Inlet looks for cards at ", places)];
}

function unconfigured() {
    return [
        h("p", {}, "Inlet looks for no cards yet. Add a watch entry whose path is a pattern, and reload:"),
        h("pre", { tabindex: 0, "aria-label": "Example" }, "watch:\n  - path: /media/*/*/DCIM"),
        small("The manual explains the patterns: ", h("a", { href: "/manual/Cards.html" }, "Cards")),
    ];
}

/** The card's name in paths and queries: the UUID where it has one. */
const handle = (card) => encodeURIComponent(card.uuid ?? card.name);
const reportLink = (card) => h("a", {
    href: `/api/v1/report/html?card=${handle(card)}`, target: "_blank", rel: "noopener",
}, "Report", h("span", { class: "hidden" }, ` on ${card.name}, in a new tab`));

function tile(page, card) {
    const isTrusted = !distrust();
    return h("li", { key: card.stay, class: `card reader ${isTrusted ? cardTone(card) : "unknown"}` },
        h("h2", {}, card.roll ? [isolated(card.roll), " · "] : null, name(card.name)),
        verdict(card, isTrusted),
        isTrusted ? copied(card, sent(card)) : null,
        facts([
            ["Camera", isolated([card.camera, card.system].filter(Boolean).join(" · "))],
            ["Operator", isolated(card.operator)], ["Note", isolated(card.note)],
            ["Reader", name(card.mount)], ["Inserted", when(card.inserted_at)],
            ["On it", content(card)],
            ["Left", isTrusted && card.open ? left(card) : null],
            ["Inlet may", card.writes ? "move and delete files on it" : "only read it"],
        ]),
        lines(card.lines),
        card.destinations.length ? places(card) : null,
        card.others.length ? others(card) : null,
        orders(page, card),
        isReader() || card.verdict === "unknown" ? null : label(page, card));
}

/** The bytes of files on their way; one that goes to several destinations counts by the slowest. */
function sent(card) {
    const files = new Map();
    for (const { job, path, sent } of live.status.in_flight ?? []) {
        if (path.startsWith(card.mount + "/")) files.set(job, Math.min(files.get(job) ?? Infinity, sent));
    }
    return [...files.values()].reduce((sum, one) => sum + one, 0);
}

const left = (card) => [
    count(card.open, "file"), bytes(card.open_bytes), card.seconds_left && span(card.seconds_left * 1000),
].filter(Boolean).join(", ");

const lacking = ({ missing, failed, silent, unconfirmed }) => missing + failed + silent + unconfirmed;

function places(card) {
    const disks = card.copies ? ` (${count(card.copies, "disk")} must have each file)` : "";
    const places = card.destinations.map((place) => ({
        key: place.name,
        cells: [
            [isolated(place.name), place.required ? small("required") : null],
            number(place.files), number(place.proved), number(place.sized), number(place.open),
            [number(lacking(place)), place.reason ? small(isolated(place.reason)) : null],
            when(place.asked_at),
        ],
    }));
    return h("details", { key: "places" },
        h("summary", {}, "Destinations" + disks),
        table(`Where the files of ${card.name} are`, [
            ["Destination"], ["Files"], ["Proved"], ["Size only"], ["To copy"], ["Not there"], ["Asked"],
        ], places, { hideCaption: true }));
}

function others(card) {
    return h("details", { key: "others" }, h("summary", {}, "Other files on it"),
        h("ul", { class: "plain" }, card.others.map((group) => h("li", { key: group.reason },
            `${count(group.files, "file")}, ${bytes(group.bytes)}, ${OTHERS[group.reason] ?? group.reason}: `,
            group.folders.map((folder, index) => [index ? ", " : "", name(folder || "/")])))));
}

function orders(page, card) {
    const { busy: running } = own(page);
    const busy = running[card.stay];
    const order = (verb, title, patience) => button(busy === verb ? `${title}: running…` : title, async () => {
        running[card.stay] = verb;
        page.redraw();
        await attempt(() => post(`cards/${handle(card)}/${verb}`, {}, patience));
        delete running[card.stay];
        await page.load();
    }, { disabled: Boolean(busy), class: "primary" });
    const isIn = card.safe && card.verdict !== "out";
    return fragment(
        h("div", { key: "orders" }, actions(
            isIn ? order("eject", "Eject", EJECT) : null,
            card.verdict === "others_left" ? order("leave", "Leave them") : null,
            card.destinations.some((place) => place.missing) ? order("resend", "Send again") : null)),
        h("p", { class: "small" }, reportLink(card)));
}

/** The names on the card's tape. Nothing waits for them, unless the configuration says so. */
function label(page, card) {
    const { drafts, opened, saved } = own(page);
    const { stay } = card;
    const draft = drafts[stay] ??= {};
    const value = (key) => draft[key] ?? card[key] ?? (key === "roll" && card.ask ? told.report.next_roll : null) ?? "";
    const save = async (event) => {
        event.preventDefault();
        const order = Object.fromEntries(LABELS.map(([key]) => [key, value(key).trim()]));
        const answer = await attempt(() => post(`cards/${handle(card)}/label`, order));
        if (!answer?.done) return;
        delete drafts[stay];
        opened[stay] = false;
        saved[stay] = (saved[stay] ?? 0) + 1;
        await page.load();
    };
    return h("details", {
        key: `label ${saved[stay] ?? 0}`, open: opened[stay] ?? card.ask,
        ontoggle: (event) => { opened[stay] = event.target.open; },
    },
    h("summary", {}, card.ask ? "Name this card as its tape says" : "Change the names"),
    h("form", { class: "filters label", onsubmit: save },
        LABELS.map(([key, title]) => h("div", { key }, h("label", { for: `${key}-${stay}` }, title), h("input", {
            id: `${key}-${stay}`, value: value(key), autocomplete: "off", maxlength: 200,
            oninput: (event) => { draft[key] = event.target.value; },
        }))),
        h("button", { type: "submit", disabled: !canAct() }, "Save names")));
}

function history(page) {
    const { stays, limit } = page.data;
    if (!stays) return null;
    const only = page.query.get("card");
    const rows = stays.map((stay) => ({ key: stay.stay, cells: row(stay) }));
    const more = stays.length >= limit && STEPS.find((step) => step > limit);
    return section("History",
        only ? h("p", {}, "Only ", name(only), ". ", h("a", { href: "#/cards" }, "Show all cards")) : null,
        rows.length ? table("Stays of cards in a reader, newest first",
            [["Card"], ["Inserted"], ["Camera"], ["From it"], ["Verdict and list"]], rows, { hideCaption: true })
            : muted("No card has been in a reader yet"),
        more ? button("Show more", async () => {
            page.data.limit = more;
            await page.load();
        }) : null);
}

function row(stay) {
    const names = [stay.camera, stay.operator].filter(Boolean).join(" · ");
    const tone = stay.verdict ? wordTone(stay.verdict) : "neutral";
    return [
        [
            stay.roll ? [h("strong", {}, isolated(stay.roll)), " "] : null,
            h("a", { href: `#/cards?card=${handle(stay)}` }, name(stay.name)),
            stay.note ? small(isolated(stay.note)) : null,
        ],
        [when(stay.inserted_at), small(stay.removed_at ? ["out ", when(stay.removed_at)] : "in the reader")],
        names ? isolated(names) : "–", `${count(stay.files, "file")}, ${bytes(stay.bytes)}`,
        h("details", { key: "list" },
            h("summary", {}, badge(stay.headline ?? "no verdict", tone)),
            stay.verdict_at ? small("decided ", when(stay.verdict_at)) : null,
            stay.lines.length ? lines(stay.lines) : muted("No list was kept"),
            stay.read_errors ? small(`${count(stay.read_errors, "read error")} in this card's life`) : null,
            small(reportLink(stay))),
    ];
}
