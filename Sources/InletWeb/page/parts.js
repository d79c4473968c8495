import { byId, fragment, h, morph } from "./dom.js";
import { live, speed } from "./live.js";
import { bytes, clock, rate, relative, span, TONES } from "./text.js";

/** A state in its word, with a mark: never by colour alone. */
export function badge(state, tone) {
    const kind = tone ?? TONES[state] ?? "neutral";
    return h("span", { class: `badge ${kind}` }, state);
}

/** A time of the agent as it is here; the whole of it on hover. */
export function when(time, near) {
    if (!time) return "–";
    return h("time", { datetime: time, title: time }, near ? relative(time, Date.now()) : clock(time));
}

/** A name may hold anything; it keeps its own direction to itself. */
export const name = (text) => h("bdi", { class: "name" }, text);

export const jobLink = (job, text) =>
    h("a", { href: `#/files/${job}`, class: "job", "data-go": "" }, text === undefined ? `job ${job}` : name(text));

/**
 * A table that reads as one everywhere; on a phone its rows become cards, which is why the roles are said.
 * columns: [title, class]; rows: [{ key, class, cells }].
 */
export function table(caption, columns, rows, options) {
    const head = columns.map(([title, kind]) =>
        h("th", { scope: "col", role: "columnheader", class: kind }, title));
    const body = rows.map((row) => h("tr", { key: row.key, role: "row", class: row.class }, row.cells.map((cell, index) => {
        const [title, kind] = columns[index];
        const label = typeof title === "string" ? title : null;
        return index === (options?.head ?? 0)
            ? h("th", { scope: "row", role: "rowheader", class: kind, "data-label": label }, cell)
            : h("td", { role: "cell", class: kind, "data-label": label }, cell);
    })));
    return h("table", { role: "table", class: options?.class },
        h("caption", { class: options?.hideCaption ? "hidden" : null }, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
        h("tbody", { role: "rowgroup" }, body));
}

export const facts = (pairs) => h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([title, value]) => h("div", {}, h("dt", {}, title), h("dd", {}, value))));

export function section(title, ...kids) {
    return h("section", { "aria-label": title, key: title }, h("h2", {}, title), ...kids);
}

export const button = (text, onclick, options) =>
    h("button", { type: "button", onclick, ...options }, text);

/** How far a transfer is, how fast, and how long it still takes. */
export function progress(transfer) {
    const share = transfer.percent ?? (transfer.size ? (100 * transfer.sent) / transfer.size : 0);
    const pace = transfer.next_look ? null : speed(transfer);
    const left = pace > 0 ? span((1000 * (transfer.size - transfer.sent)) / pace) + " left" : null;
    const parts = [
        `${Math.floor(share)} %`,
        transfer.percent == null ? `${bytes(transfer.sent)} of ${bytes(transfer.size)}` : null,
        transfer.step, pace === null ? null : rate(pace), left,
        transfer.next_look ? asked(transfer.next_look) : null,
    ];
    return h("div", { class: "progress" },
        h("progress", {
            max: 100, value: share, "aria-label": `${transfer.path} to ${transfer.destination}`,
        }),
        h("span", { class: "small" }, parts.filter(Boolean).join(" · ")));
}

const asked = (time) => (new Date(time) > Date.now() ? `asked again ${relative(time, Date.now())}` : "being asked");

/** Draws into `place` what `draw` returns. */
export const paint = (place, ...kids) => morph(place, fragment(...kids));

export const canAct = () => live.session?.access === "full" && ["live", "polling"].includes(live.connection);

/** Buttons that change something; those who may not are told so once a page. */
export function actions(...buttons) {
    if (live.session?.access === "read") return null;
    return h("div", { class: "actions" }, buttons.map((entry) => {
        if (entry && !canAct()) entry.disabled = true;
        return entry;
    }));
}

/** Asks before something is done. Resolves with what `fields` hold, or null for no. */
export function confirm({ title, body, yes, tone, fields }) {
    const dialog = byId("dialog");
    return new Promise((answer) => {
        const end = (value) => {
            dialog.onclose = null;
            if (dialog.open) dialog.close();
            answer(value);
        };
        dialog.replaceChildren(h("form", {
            method: "dialog",
            onsubmit: (event) => {
                event.preventDefault();
                end(Object.fromEntries(new FormData(event.target)));
            },
        },
        h("h2", { id: "dialog-title" }, title), body, fields,
        h("div", { class: "actions" },
            h("button", { type: "button", onclick: () => end(null), autofocus: fields ? null : true }, "Keep as it is"),
            yes ? h("button", { type: "submit", class: tone === "bad" ? "danger" : "primary" }, yes) : null)));
        dialog.onclose = () => end(null);
        dialog.showModal();
    });
}
