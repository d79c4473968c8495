// Elements that several views share.
import { byId, debounced, h } from "./dom.js";
import { bytes, clock, percent, rate, relative, span } from "./format.js";
import { live, speed } from "./live.js";
import { TONES } from "./states.js";

export const muted = (...kids) => h("p", { class: "muted" }, kids);
export const small = (...kids) => h("p", { class: "small" }, kids);

/** A view without its data yet; `app.js` shows an error above it. */
export const reading = (page) => muted(page.error ? "" : "Loading…");

/** A state as a word with a mark, never by colour alone. */
export function badge(state, tone) {
    return h("span", { class: `badge ${tone ?? TONES[state] ?? "neutral"}` }, state);
}

/** A time of the agent in local time; on hover, as the agent sent it. */
export function when(time, near) {
    if (!time) return "–";
    return h("time", { datetime: time, title: time }, near ? relative(time) : clock(time));
}

/** Text from outside, whose writing direction stays inside; null for none. */
export const isolated = (text) => (text ? h("bdi", {}, text) : null);

/** A name from outside, perhaps very long. */
export const name = (text) => h("bdi", { class: "name" }, text);

export const texts = (lines, kind) => h("ul", { class: kind }, lines.map((line) => h("li", {}, isolated(line))));

export const jobLink = (job, path) =>
    h("a", { href: `#/files/${job}`, class: "job", "data-go": "" }, path == null ? `job ${job}` : name(path));

/** A link to the files whose `key` is `value`. */
export const filesLink = (key, value, text) => h("a", { href: `#/files?${key}=${encodeURIComponent(value)}` }, text);

/**
 * A table. On a phone its rows become cards, so it names the roles that the browser then no longer gives.
 * columns: [title, class]; rows: [{ key, class, cells }].
 */
export function table(caption, columns, rows, options) {
    const head = columns.map(([title, kind]) =>
        h("th", { scope: "col", role: "columnheader", class: kind }, title));
    const cell = (content, index) => {
        const [label, kind] = columns[index];
        return index === 0
            ? h("th", { scope: "row", role: "rowheader", class: kind, "data-label": label }, content)
            : h("td", { role: "cell", class: kind, "data-label": label }, content);
    };
    return h("table", { role: "table", class: options?.class },
        h("caption", { class: options?.hideCaption ? "hidden" : null }, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
        h("tbody", { role: "rowgroup" }, rows.map((row) =>
            h("tr", { key: row.key, role: "row", class: row.class }, row.cells.map(cell)))));
}

export const facts = (pairs) => h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value != null && value !== "")
    .map(([title, value]) => h("div", {}, h("dt", {}, title), h("dd", {}, value))));

export function section(title, ...kids) {
    return h("section", { "aria-label": title, key: title }, h("h2", {}, title), kids);
}

export const button = (text, onclick, options) => h("button", { type: "button", onclick, ...options }, text);

/** A control of a form, with its label. */
export const field = (title, control, kind, note) =>
    h("div", { class: kind, key: control.id }, h("label", { for: control.id }, title), control, note);

/** options: [value, text], or a value that is its own text. */
export const choice = (props, options) => h("select", props, options.map((option) => {
    const [value, text] = [option].flat();
    return h("option", { value }, text ?? value);
}));

/** Puts a filter in the address, and returns to the first page of the list. */
export const setFilter = (page, key, value) => page.setQuery({ [key]: value, before: "", find: "" });
const setText = debounced(250, (page, text) => page.open && setFilter(page, "q", text));

export const searchForm = (label, ...kids) => h("form", {
    class: "filters", role: "search", "aria-label": label, onsubmit: (event) => event.preventDefault(),
}, kids);

export const searchBox = (page, options) => h("input", {
    type: "search", value: page.query.get("q") ?? "", "data-search": true, autocomplete: "off",
    oninput: (event) => setText(page, event.target.value), ...options,
});

/** The progress of a transfer, its rate, and the time left. */
export function progress(transfer) {
    const share = transfer.percent ?? (transfer.size ? (100 * transfer.sent) / transfer.size : 0);
    const pace = transfer.next_look ? null : speed(transfer);
    const parts = [
        percent(share),
        transfer.percent == null ? `${bytes(transfer.sent, true)} of ${bytes(transfer.size)}` : null,
        transfer.step, pace === null ? null : rate(pace, true),
        pace > 0 ? `${span((1000 * (transfer.size - transfer.sent)) / pace)} left` : null,
        transfer.next_look ? nextCheck(transfer.next_look) : null,
    ];
    return h("div", { class: "progress" },
        h("progress", { max: 100, value: share, "aria-label": `${transfer.path} to ${transfer.destination}` }),
        h("span", { class: "small" }, parts.filter(Boolean).join(" · ")));
}

const nextCheck = (time) => (new Date(time) > Date.now() ? `next check ${relative(time)}` : "checking now");

export const isReader = () => live.session?.access === "read";
export const canAct = () => live.session?.access === "full" && ["live", "polling"].includes(live.connection);

/** Buttons that change something; null is none. Readers get none, and `app.js` shows the reason. */
export function actions(...buttons) {
    const all = buttons.filter(Boolean);
    if (isReader() || !all.length) return null;
    for (const node of all) if (!canAct()) node.disabled = true;
    return h("div", { class: "actions" }, all);
}

/** Asks before an action. Resolves with the values of `fields`, or with null for no. */
export function confirm({ title, body, yes, no, tone, fields }) {
    const dialog = byId("dialog");
    return new Promise((answer) => {
        const end = (value) => {
            dialog.onclose = null;
            if (dialog.open) dialog.close();
            answer(value);
        };
        const onsubmit = (event) => {
            event.preventDefault();
            end(Object.fromEntries(new FormData(event.target)));
        };
        dialog.replaceChildren(h("form", { method: "dialog", onsubmit },
            h("h2", { id: "dialog-title" }, title), body, fields,
            h("div", { class: "actions" },
                button(no ?? "Cancel", () => end(null), { autofocus: !fields }),
                yes ? h("button", { type: "submit", class: tone === "bad" ? "danger" : "primary" }, yes) : null)));
        // The event of an earlier question comes late.
        dialog.onclose = () => dialog.open || end(null);
        dialog.showModal();
    });
}
