// Changing the configuration: a form made from the schema, a try that shows what would happen, and the change itself.
import { get, post } from "./api.js";
import { byId, h, toast } from "./dom.js";
import { count, plain } from "./format.js";
import { live } from "./live.js";
import { badge, button, choice, confirm, facts, isolated, muted, name, section, small, table, when } from "./parts.js";

const LISTS = {
    watch: {
        title: "Watched folders", one: "watched folder",
        usual: ["path", "recursive", "settle", "existing", "expect", "ignore"],
    },
    destinations: {
        title: "Destinations", one: "destination",
        usual: ["path", "endpoint", "bucket", "region", "access_key", "secret_key", "url", "api", "api_key", "user",
            "password", "token", "upload_token", "storage", "auth", "verify", "bandwidth"],
    },
    routes: { title: "Routes", one: "route", usual: ["name", "match", "to", "key", "names", "on_success"] },
};
/** Keys that only the file itself may set: they start programs. */
const PROGRAMS = ["on_card", "command", "derive"];
let schema = null;

/** The lists with a button for each change. */
export function lists(page) {
    const { form } = page.data;
    if (!form) return null;
    const open = (list, entry) => page.setQuery({ change: list, entry });
    const row = (list) => (entry) => ({
        key: entry.number,
        cells: [name(entry.name || `entry ${entry.number + 1}`), summary(entry), h("div", { class: "actions" },
            button("Change…", () => open(list, String(entry.number)),
                { "aria-label": `Change ${LISTS[list].one} ${entry.name}` }),
            button("Remove…", () => remove(page, list, entry),
                { "aria-label": `Remove ${LISTS[list].one} ${entry.name}` }))],
    });
    return section("Set up",
        form.objection ? muted(`You can try changes and copy their lines. ${sentence(form.objection)}`) : null,
        form.errors.map((error) => h("p", { class: "fault" }, isolated(error.text))),
        Object.entries(LISTS).map(([list, { title, one }]) => h("div", { key: list },
            h("h3", {}, title),
            form[list].length ? table(title, [["Name"], ["Settings"], ["Change"]], form[list].map(row(list)),
                { hideCaption: true }) : muted(`No ${title.toLowerCase()} yet`),
            h("div", { class: "actions" }, button(`Add a ${one}…`, () => open(list, "new"))))),
        form.versions.length ? history(page, form.versions) : null,
        page.data.wish && !page.query.get("change") ? outcome(page) : null);
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + ".";

function summary({ values }) {
    const short = (value) => (Array.isArray(value) ? value.map(short).join(", ")
        : value && typeof value === "object" ? `{${Object.keys(value).join(", ")}}` : String(value));
    return Object.entries(values).filter(([key]) => key !== "name").slice(0, 4)
        .map(([key, value], index) => [index ? " · " : "", `${key} `, name(short(value))]);
}

/** `inlet.yaml.2026-11-27T15-05-01.123Z.old` as a time. */
function timeOf(version) {
    const [, day, hour, minute, rest] = /(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-([\d.]+Z)\.old$/.exec(version) ?? [];
    return day ? `${day}${hour}:${minute}:${rest}` : null;
}

function history(page, versions) {
    const go = (version, title) => aim(page, { version, title });
    return h("div", { key: "history" },
        h("div", { class: "actions" },
            button("Undo the last change…", () => go(versions[0], "Undo the last change"))),
        versions.length > 1 ? h("details", {},
            h("summary", {}, `${count(versions.length, "former text")} kept`),
            h("ul", { class: "plain" }, versions.map((version) => h("li", { key: version },
                "Until ", when(timeOf(version)), " ",
                button("Go back to this…", () => go(version, `Go back to ${version}`),
                    { "aria-label": `Go back to ${version}` }))))) : null);
}

const remove = (page, list, entry) => aim(page, {
    edits: [{ list, number: entry.number }], title: `Remove ${LISTS[list].one} ${entry.name}`,
});

/** Tries a change. It is one of the text that the page has read, whatever another load brings. */
function aim(page, wish) {
    page.data.wish = { ...wish, hash: page.data.began ?? page.data.form.hash };
    return check(page);
}

/** Reads what the open form needs. */
export async function loadForm(page) {
    if (page.query.get("change")) schema ??= await get("config/schema");
    const key = `${page.query.get("change")} ${page.query.get("entry")}`;
    if (page.data.key === key) return;
    Object.assign(page.data, { key, typed: new Map(), type: null, wish: null, trial: null, began: null });
}

/** The form as the agent has it now. An open one began with another text perhaps, and numbers its entries. */
export function takeForm(page, form) {
    const { began, wish } = page.data;
    const isOpen = page.query.get("change") !== null;
    if (form && isOpen) page.data.began ??= form.hash;
    const held = isOpen ? began : wish?.hash;
    if (form && held && held !== form.hash) {
        Object.assign(page.data, { wish: null, trial: null });
        if (isOpen) {
            const fault = "Somebody else has changed the file. Cancel, and begin your change again.";
            Object.assign(page.data, { wish: { title: "Not possible any more" }, trial: { fault } });
            return;
        }
    }
    page.data.form = form;
}

/** The form of one entry; null where none is open. */
export function changeForm(page) {
    const list = page.query.get("change");
    const { form } = page.data;
    if (!list || !form) return null;
    if (!schema || !LISTS[list]) return muted("Loading…");
    const number = page.query.get("entry");
    const entry = number === "new" ? null : form[list].find((one) => String(one.number) === number);
    if (number !== "new" && !entry) return muted("The file has no such entry any more.");
    const state = { page, list, entry, keys: keysOf(page, list, entry) };
    const [usual, rare] = [[], []];
    for (const key of Object.keys(state.keys.properties)) {
        if (PROGRAMS.includes(key) || key === "type" && list === "destinations") continue;
        const isUsual = state.keys.required?.includes(key) || LISTS[list].usual.includes(key)
            || key in (entry?.values ?? {})
            || entry?.secrets.some((path) => path === key || path.startsWith(key + "."));
        (isUsual ? usual : rare).push(key);
    }
    const title = entry ? `Change ${LISTS[list].one} ${entry.name}` : `New ${LISTS[list].one}`;
    const fields = (keys) => keys.map((key) =>
        control(state, [key], state.keys.properties[key], entry?.values[key], state.keys.required?.includes(key)));
    const submit = (event) => {
        event.preventDefault();
        const edit = collected(state);
        if (edit) aim(page, { edits: [edit], title });
    };
    return section(title,
        h("form", { class: "change", onsubmit: submit, autocomplete: "off", novalidate: true, key: page.data.key },
            list === "destinations" ? kind(state) : null,
            fields(usual),
            rare.length ? h("details", { key: "rare" }, h("summary", {}, "More settings"), fields(rare)) : null,
            h("p", { id: "change-fault", role: "alert", class: "fault", own: true }),
            h("div", { class: "actions" },
                h("button", { type: "submit", class: "primary" }, "Check"),
                button("Cancel", () => close(page)))),
        outcome(page));
}

function keysOf(page, list, entry) {
    if (list !== "destinations") return schema.properties[list].items;
    const kinds = schema.properties.destinations.additionalProperties.oneOf;
    const type = entry?.values.type ?? page.data.type ?? "folder";
    return kinds.find((one) => one.properties.type.enum[0] === type) ?? kinds[0];
}

/** A destination's name and type: only a new one may choose. */
function kind({ page, entry, keys }) {
    if (entry) return facts([["Type", entry.values.type], ["Kind", keys.properties.type.description]]);
    const kinds = schema.properties.destinations.additionalProperties.oneOf;
    const types = kinds.map(({ properties: { type } }) => [type.enum[0], `${type.enum[0]}: ${type.description}`]);
    types.sort(([one], [other]) => order(one) - order(other));
    const choose = (event) => {
        page.data.type = event.target.value;
        changed(page);
    };
    return [
        row({
            id: "change-name", title: "name", required: true,
            note: "For log lines and commands; letters, digits, . _ -",
            control: h("input", {
                id: "change-name", value: page.data.typed.get(" name") ?? "", required: true,
                oninput: (event) => type(page, " name", event.target.value),
            }),
        }),
        row({
            id: "change-type", title: "type",
            control: choice({ id: "change-type", value: page.data.type ?? "folder", onchange: choose }, types),
        }),
    ];
}

const ORDER = ["folder", "s3", "r2"];
const order = (type) => (ORDER.includes(type) ? ORDER.indexOf(type) : ORDER.length);

function type(page, key, text) {
    page.data.typed.set(key, text);
    changed(page);
}

/** A result of what was typed before must not be applied. */
function changed(page) {
    Object.assign(page.data, { wish: null, trial: null });
    page.redraw();
}

function row({ id, title, note, control, required }) {
    const described = note ? `${id}-note` : null;
    if (described) control.setAttribute("aria-describedby", described);
    return h("div", { key: id, class: "row" },
        h("label", { for: id }, title, required ? h("span", { class: "muted" }, " (required)") : null),
        control, note ? h("p", { id: described, class: "small" }, note) : null);
}

/** The form of a value: what the schema says of it. */
function shape(spec) {
    if (spec.properties) return "section";
    if (spec.writeOnly) return "secret";
    if (spec.type === "boolean") return "flag";
    if (spec.enum) return "word";
    if (spec.type === "array") return "json";
    if (spec.type === "object") return "pairs";
    if (spec.oneOf) return "lines";
    if (spec.anyOf?.some((one) => one.properties)) return "brief";
    return "text";
}

/** A control, or a group of them for a section. */
function control(state, path, spec, value, required) {
    const { page, entry } = state;
    const dotted = path.join(".");
    const form = shape(spec);
    if (form === "section") {
        return h("fieldset", { key: dotted }, h("legend", {}, path.at(-1)), small(spec.description),
            Object.entries(spec.properties).filter(([key]) => !PROGRAMS.includes(key)).map(([key, inner]) =>
                control(state, [...path, key], inner, value?.[key], spec.required?.includes(key))));
    }
    const id = "change-" + path.join("-");
    const isKept = entry?.secrets.includes(dotted);
    const text = page.data.typed.get(dotted) ?? written(form, value);
    const props = {
        id, value: text, spellcheck: "false", autocomplete: "off", required: required && !isKept,
        oninput: (event) => type(page, dotted, event.target.value),
    };
    const usual = spec.default === undefined ? "" : `default ${spec.default}`;
    let element;
    if (form === "flag" || form === "word") {
        const words = form === "flag" ? ["true", "false"] : spec.enum.map(String);
        element = choice(props, [["", usual || "not set"], ...words]);
    } else if (["lines", "pairs", "json"].includes(form) || (form === "brief" && typeof value === "object")) {
        element = h("textarea", { ...props, rows: Math.min(8, Math.max(2, text.split("\n").length)) });
    } else {
        const secret = form === "secret" && !text.startsWith("${");
        const hint = usual || spec.examples?.[0] || "";
        element = h("input", {
            ...props, type: secret ? "password" : "text", autocomplete: secret ? "new-password" : "off",
            placeholder: isKept ? "set; leave empty to keep it" : hint,
        });
    }
    const hint = { lines: "One a line.", pairs: "name: value, one a line.", json: "As JSON." }[form]
        ?? (form === "secret" ? "Or where it is kept: ${env:NAME}, ${file:/path}." : "");
    const note = [spec.description, hint].filter(Boolean).join(" ");
    return row({ id, title: path.at(-1), note, control: element, required });
}

function written(form, value) {
    if (value === undefined) return "";
    if (form === "lines") return [value].flat().join("\n");
    if (form === "pairs") return Object.entries(value).map(([key, text]) => `${key}: ${text}`).join("\n");
    if (typeof value === "object") return JSON.stringify(value, null, 1);
    return String(value);
}

/** The value of a text; undefined for none. Throws for one that cannot be read. */
function read(form, spec, text) {
    const trimmed = text.trim();
    if (!trimmed) return undefined;
    if (form === "flag") return trimmed === "true";
    if (form === "lines") return trimmed.split("\n").map((line) => line.trim()).filter(Boolean);
    if (form === "pairs") {
        return Object.fromEntries(trimmed.split("\n").map((line) => {
            const colon = line.indexOf(":");
            if (colon < 1) throw new Error("write name: value, one a line");
            return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
        }));
    }
    if (form === "json" || (form === "brief" && /^[[{]/.test(trimmed))) return JSON.parse(trimmed);
    if (spec.type === "integer" && /^-?\d+$/.test(trimmed)) return Number(trimmed);
    return form === "secret" ? text : trimmed;
}

/** What was typed, as a change; null where something is missing or cannot be read. */
function collected({ page, list, entry, keys }) {
    const values = {};
    const fault = byId("change-fault");
    fault.textContent = "";
    const refuse = (path, why) => {
        fault.textContent = `${path}: ${why}`;
        const field = byId("change-" + path.replaceAll(".", "-"));
        const hidden = field?.closest("details");
        if (hidden) hidden.open = true;
        field?.focus();
        return null;
    };
    for (const [dotted, text] of page.data.typed) {
        if (dotted === " name") continue;
        const path = dotted.split(".");
        const spec = path.reduce((at, key) => at?.properties?.[key], keys);
        if (!spec) continue;
        const form = shape(spec);
        const before = path.reduce((at, key) => at?.[key], entry?.values);
        if (text === written(form, before)) continue;
        let value;
        try {
            value = read(form, spec, text);
        } catch (error) {
            return refuse(dotted, error.message);
        }
        // An empty secret keeps the one that is there.
        if (value === undefined && before === undefined) continue;
        if (form === "brief" && typeof value === "object" && typeof before === "object") {
            for (const key of Object.keys(before)) if (!(key in value)) value[key] = null;
        }
        const inner = path.slice(0, -1).reduce((at, key) => (at[key] ??= {}), values);
        inner[path.at(-1)] = value ?? null;
    }
    if (entry) {
        if (Object.keys(values).length) return { list, number: entry.number, values };
        return refuse(Object.keys(keys.properties)[0], "nothing has changed");
    }
    const missing = (keys.required ?? []).find((key) => key !== "type" && values[key] == null);
    if (missing) return refuse(missing, "is required");
    if (list !== "destinations") return { list, values };
    const called = page.data.typed.get(" name")?.trim();
    if (!called) return refuse("name", "give the destination a name");
    return { list, name: called, values: { type: keys.properties.type.enum[0], ...values } };
}

const orderOf = ({ wish: { hash, edits, version } }) => ({ hash, edits, version });

/** Tries the change, and shows what it would do. */
async function check(page) {
    page.data.trial = null;
    try {
        page.data.trial = await post("config/try", orderOf(page.data));
    } catch (error) {
        page.data.trial = refusal(error);
    }
    show(page);
}

const refusal = ({ message, differences, status, code }) =>
    ({ fault: message, differences, isOld: status === 409, needsLogin: code === "login_again" });

function show(page) {
    page.redraw();
    requestAnimationFrame(() => byId("outcome")?.focus());
}

function outcome(page) {
    const { trial, wish, form } = page.data;
    if (!trial || !wish) return null;
    return h("div", { key: "outcome", class: "outcome" },
        h("h3", { id: "outcome", tabindex: -1 }, wish.title),
        trial.fault ? problem(page, trial) : [
            trial.errors.map((error) => h("pre", {
                class: "config-fault", tabindex: 0, role: "group", "aria-label": "Error",
            }, error.text)),
            trial.warnings.map((error) => h("p", {}, badge("warning", "waiting"), " ", isolated(error.message))),
            lines(trial.diff, `Lines of ${form.file}`),
            trial.changes.length ? changes(trial.changes) : null,
            trial.files ? files(trial.files) : null,
            trial.restart ? h("p", {}, badge("needs a restart", "waiting"), " ", isolated(trial.restart)) : null,
            trial.checked ? null : muted("Not checked yet: that needs the right to apply it."),
            trial.ok ? apply(page) : h("p", {}, badge("not applied", "bad"), " Correct this first."),
        ]);
}

function problem(page, { fault, differences, isOld, needsLogin }) {
    return [
        h("p", { class: "banner bad", role: "alert" }, isolated(fault)),
        differences?.length ? lines(differences, "Changed meanwhile") : null,
        isOld ? h("div", { class: "actions" }, button("Load again", () => close(page))) : null,
        needsLogin ? h("div", { class: "actions" }, button("Log in again…", () => logInAgain(page))) : null,
    ];
}

const MARKS = { "+": "added", "-": "removed" };

/** A comparison: the marks are words for a screen reader. */
function lines(all, title) {
    const line = ({ mark, text }, index) => h("span", { key: index, class: MARKS[mark] ?? null },
        h("span", { "aria-hidden": "true" }, mark + " "),
        MARKS[mark] ? h("span", { class: "hidden" }, MARKS[mark] + ": ") : null, text + "\n");
    return h("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": title }, all.map(line));
}

function changes(all) {
    const value = (held) => name(held == null ? "–" : plain(held));
    return table("Changes", [["Key"], ["From"], ["To"]], all.map(({ path, from, to }) =>
        ({ key: path, cells: [h("code", {}, path), value(from), value(to)] })));
}

function files({ planned, known, others, partial, examples }) {
    const rows = examples.slice(0, 12).map((file, index) => ({
        key: index,
        cells: [name(file.path), file.route ?? "–", h("code", {}, name(file.key ?? file.reason ?? "–")),
            (file.destinations ?? []).join(", ") || file.verdict],
    }));
    const said = `${count(planned, "file")} that ${planned === 1 ? "is" : "are"} there would be sent, `
        + `${count(known, "file")} known already, ${count(others, "other")} not sent`;
    return h("div", { key: "files" }, h("h3", {}, "The files that are there"),
        h("p", {}, said, partial ? " (not all were looked at)" : "", "."),
        rows.length ? table("Examples", [["File"], ["Route"], ["Key"], ["To"]], rows) : null);
}

function apply(page) {
    const { form, trial } = page.data;
    if (!form.objection) {
        return h("div", { class: "actions" }, button("Apply", () => write(page), { class: "primary" }));
    }
    const added = trial.diff.filter(({ mark }) => mark === "+").map(({ text }) => text).join("\n");
    return [
        h("p", {}, isolated(sentence(form.objection))),
        form.needs_login ? h("div", { class: "actions" }, button("Log in again…", () => logInAgain(page))) : null,
        added ? h("p", {}, "Or put these lines into the file yourself, at the place that the comparison shows. "
            + "Write each secret in place of ***:") : null,
        added ? h("pre", { tabindex: 0, role: "group", "aria-label": "Lines to paste" }, added) : null,
    ];
}

async function write(page) {
    let report;
    try {
        report = await post("config/apply", orderOf(page.data), 120000);
    } catch (error) {
        // A login that has grown too old, another text, or a file that cannot be written.
        page.data.trial = refusal(error);
        return show(page);
    }
    toast(report.message, report.done ? "good" : "bad");
    page.data.reload = report;
    if (report.done) return close(page);
    page.data.trial = { fault: report.message };
    show(page);
}

/** Leaves the form, and reads the file again. */
async function close(page) {
    Object.assign(page.data, { wish: null, trial: null, typed: new Map(), key: null, began: null });
    page.setQuery({ change: "", entry: "" });
    await page.load();
}

async function logInAgain(page) {
    const isLink = live.session?.login === "link";
    const answer = await confirm({
        title: "Log in again", yes: isLink ? null : "Log in", no: isLink ? "Close" : "Cancel",
        body: isLink
            ? h("p", {}, "On the machine that runs Inlet, run ", h("code", {}, "inlet open"),
                " and open its link in this browser.")
            : null,
        fields: isLink ? null : [h("label", { for: "again" }, "Password or token"),
            h("input", {
                id: "again", name: "again", type: "password", required: true, autocomplete: "current-password",
            })],
    });
    if (!answer) return;
    try {
        await post("login", { secret: answer.again });
    } catch (error) {
        toast(error.message, "bad");
    }
    await page.load();
    if (page.data.wish?.hash) await check(page);
}
