// What several views are made of.
import { byId, debounced, h } from "./dom.js";
import { live, speed } from "./live.js";
import { bytes, clock, rate, relative, span, TONES } from "./text.js";

export const muted = (...kids) => h("p", { class: "muted" }, kids);
export const small = (...kids) => h("p", { class: "small" }, kids);

/** A view that has not read its values yet; where that failed, the error stands above it. */
export const reading = (page) => muted(page.error ? "" : "Reading…");

/** A state in its word, with a mark: never by colour alone. */
export function badge(state, tone) {
    return h("span", { class: `badge ${tone ?? TONES[state] ?? "neutral"}` }, state);
}

/** A time of the agent as it is here; the whole of it on hover. */
export function when(time, near) {
    if (!time) return "–";
    return h("time", { datetime: time, title: time }, near ? relative(time) : clock(time));
}

/** A text from outside keeps its direction to itself; null where there is none. */
export const isolated = (text) => (text ? h("bdi", {}, text) : null);

/** A name may hold anything, and be very long. */
export const name = (text) => h("bdi", { class: "name" }, text);

export const texts = (lines, kind) => h("ul", { class: kind }, lines.map((line) => h("li", {}, isolated(line))));

export const jobLink = (job, path) =>
    h("a", { href: `#/files/${job}`, class: "job", "data-go": "" }, path == null ? `job ${job}` : name(path));

/** A link to the files for which `key` is `value`. */
export const filesLink = (key, value, text) => h("a", { href: `#/files?${key}=${encodeURIComponent(value)}` }, text);

/**
 * A table that reads as one everywhere; on a phone its rows become cards, which is why the roles are said.
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

/** options: [value, text], or the value alone where it is the text too. */
export const choice = (props, options) => h("select", props, options.map((option) => {
    const [value, text] = [option].flat();
    return h("option", { value }, text ?? value);
}));

/** Puts a filter in the address; a list that is filtered otherwise begins anew. */
export const setFilter = (page, key, value) => page.setQuery({ [key]: value, before: "", find: "" });
const setText = debounced(250, (page, text) => page.open && setFilter(page, "q", text));

export const searchForm = (label, ...kids) => h("form", {
    class: "filters", role: "search", "aria-label": label, onsubmit: (event) => event.preventDefault(),
}, kids);

export const searchBox = (page, options) => h("input", {
    type: "search", value: page.query.get("q") ?? "", "data-search": true, autocomplete: "off",
    oninput: (event) => setText(page, event.target.value), ...options,
});

/** How far a transfer is, how fast, and how long it still takes. */
export function progress(transfer) {
    const share = transfer.percent ?? (transfer.size ? (100 * transfer.sent) / transfer.size : 0);
    const pace = transfer.next_look ? null : speed(transfer);
    const parts = [
        `${Math.floor(share)} %`,
        transfer.percent == null ? `${bytes(transfer.sent)} of ${bytes(transfer.size)}` : null,
        transfer.step, pace === null ? null : rate(pace),
        pace > 0 ? `${span((1000 * (transfer.size - transfer.sent)) / pace)} left` : null,
        transfer.next_look ? asked(transfer.next_look) : null,
    ];
    return h("div", { class: "progress" },
        h("progress", { max: 100, value: share, "aria-label": `${transfer.path} to ${transfer.destination}` }),
        h("span", { class: "small" }, parts.filter(Boolean).join(" · ")));
}

const asked = (time) => (new Date(time) > Date.now() ? `asked again ${relative(time)}` : "being asked");

export const isReader = () => live.session?.access === "read";
export const canAct = () => live.session?.access === "full" && ["live", "polling"].includes(live.connection);

/** Buttons that change something; readers get none, and `app.js` says why once a page. */
export function actions(...buttons) {
    if (isReader()) return null;
    for (const node of buttons) if (!canAct()) node.disabled = true;
    return h("div", { class: "actions" }, buttons);
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
        const onsubmit = (event) => {
            event.preventDefault();
            end(Object.fromEntries(new FormData(event.target)));
        };
        dialog.replaceChildren(h("form", { method: "dialog", onsubmit },
            h("h2", { id: "dialog-title" }, title), body, fields,
            h("div", { class: "actions" },
                button("Keep as it is", () => end(null), { autofocus: !fields }),
                yes ? h("button", { type: "submit", class: tone === "bad" ? "danger" : "primary" }, yes) : null)));
        dialog.onclose = () => end(null);
        dialog.showModal();
    });
}
