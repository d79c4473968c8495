// A card's verdict in words, colour and shape.
import { h } from "./dom.js";
import { bytes, count } from "./format.js";
import { badge, isolated } from "./parts.js";

const WORDS = { safe: "good", empty: "good", out: "good", not_yet: "waiting" };
const MARKS = {
    good: ["good", "good"], waiting: ["waiting", "waiting"], bad: ["problem", "bad"], note: ["note", "neutral"],
};
/** The body of each shape and the sign in it: a disc, an hourglass, an octagon, a square. */
const SHAPES = {
    good: ["M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22z", "M6.5 12.5l4 4 7.5-8.5"],
    waiting: ["M4 1h16v4.5L14 12l6 6.5V23H4v-4.5L10 12 4 5.5z", "M8.5 19.5L12 16l3.5 3.5"],
    bad: ["M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z", "M12 5.5v8m0 4.200v.3"],
    unknown: ["M2 2h20v20H2z", "M8.5 9a3.5 3.5 0 1 1 5 3.2c-1 .5-1.5 1.1-1.5 2.3m0 3.7v.3"],
};

/** The look of a word of the history. An unknown one may be a bad one. */
export const wordTone = (word) => WORDS[word] ?? "bad";

/** The look of a card in a reader. */
export const cardTone = (card) => (card.safe ? "good" : card.needs_somebody ? "bad" : "waiting");

/** The sentence that is read from three metres. Without trust in the answer it is no verdict. */
export function verdict(card, isTrusted) {
    const tone = isTrusted ? cardTone(card) : "unknown";
    const text = isTrusted ? card.headline : "NOT KNOWN";
    const colon = text.indexOf(": ");
    const [word, more] = colon < 0 ? [text, null] : [text.slice(0, colon), text.slice(colon + 2)];
    const [body, sign] = SHAPES[tone];
    return h("div", { class: `verdict ${tone}` },
        h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "shape" },
            h("path", { d: body, class: "shape-body" }), h("path", { d: sign, class: "shape-sign" })),
        h("p", { class: "headline" }, h("strong", {}, word, more ? h("span", { class: "hidden" }, ": ") : null),
            more ? h("span", { class: "more" }, isolated(more)) : null));
}

/** The list below the verdict. */
export const lines = (list) => h("ul", { class: "card-lines" }, list.map(({ mark, text }) => {
    const [word, tone] = MARKS[mark] ?? MARKS.note;
    return h("li", { class: mark }, badge(word, tone), " ", isolated(text));
}));

/** The files on a card; while nothing but open ones is counted, those. */
export const content = (card) => (card.files
    ? `${count(card.files, "file")}, ${bytes(card.bytes)}` : card.open ? `${bytes(card.open_bytes)} to copy` : null);

/** The most open bytes of each stay that this page has seen, for cards that are not counted yet. */
const most = new Map();

/**
 * The part of a card's bytes that is copied, while it is being copied; null otherwise.
 * @param sent bytes of files that are on their way now
 */
export function copied(card, sent = 0) {
    if (card.stage !== "copying" || card.needs_somebody || !card.open_bytes) return null;
    most.set(card.stay, Math.max(most.get(card.stay) ?? 0, card.open_bytes));
    const all = card.bytes || most.get(card.stay);
    const done = Math.max(0, Math.min(all, all - card.open_bytes + sent));
    return h("progress", { key: "copied", max: all, value: done, "aria-label": `${card.name}: copied` });
}
