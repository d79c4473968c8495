import { get, post } from "./api.js";
import { fragment, h } from "./dom.js";
import { live } from "./live.js";
import { attempt } from "./actions.js";
import { actions, badge, button, canAct, confirm, facts, name, section, table, when } from "./parts.js";

const LEVELS = ["debug", "info", "warning", "error"];

export const config = {
    title: () => "Configuration",
    load: async (page) => {
        const none = (error) => {
            if (error.status !== 404) throw error;
            return { text: "" };
        };
        const [shown, level] = await Promise.all([get("config").catch(none), get("log/level").catch(() => null)]);
        Object.assign(page.data, { shown, level: level?.level });
    },
    render: (page) => fragment(result(page.data.reload), file(page), logging(page), about()),
};

function file(page) {
    const { shown } = page.data;
    if (!shown) return h("p", { class: "muted", key: "wait" }, page.error ? "" : "Reading…");
    return section("In use",
        facts([["File", name(shown.file ?? "–")], ["Read", when(shown.loaded_at)], ["Secrets", "shown as ***"]]),
        actions(button("Reload…", () => reload(page))),
        h("pre", { tabindex: 0, "aria-label": "Configuration" }, shown.text));
}

async function reload(page) {
    const sure = await confirm({
        title: "Read the configuration again?", yes: "Reload",
        body: h("p", {}, "Running transfers go on. If the file has an error, what is in use stays in use."),
    });
    if (!sure) return;
    page.data.reload = await attempt(() => post("reload"));
    await page.load();
}

function result(report) {
    if (!report) return null;
    const changes = (report.changes || []).map((change) => ({
        key: change.path,
        cells: [
            h("code", {}, change.path), name(text(change.from)), name(text(change.to)),
            badge(change.effect === "restart" ? "at the next start" : "now", change.effect === "restart" ? "waiting" : "good"),
        ],
    }));
    return section("What came of it",
        h("p", {}, badge(report.done ? "done" : "not done", report.done ? "good" : "bad"), " ", h("bdi", {}, report.message)),
        faults(report.errors || []),
        changes.length ? table("Changes", [["Key"], ["From"], ["To"], ["Takes effect"]], changes) : null);
}

/** As a compiler tells them: the place, the sentence, and the line with a caret below the place. */
function faults(errors) {
    return errors.length ? h("div", { role: "alert", key: "faults" }, errors.map((error) => h("div", { class: "config-fault" },
        h("p", {}, h("code", {}, name(place(error))), ": ", h("bdi", {}, error.message)),
        error.excerpt ? h("pre", { tabindex: 0, role: "group", "aria-label": `Line ${error.line}` }, error.excerpt) : null))) : null;
}

function place({ file, line, column }) {
    return [file, line || null, line && column ? column : null].filter((part) => part !== null).join(":");
}

function text(value) {
    if (value === null || value === undefined) return "–";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function logging(page) {
    const { level } = page.data;
    if (!level) return null;
    const set = async (event) => {
        await attempt(() => post("log/level", { level: event.target.value }));
        await page.load();
    };
    return section("Log level", live.session?.access === "read"
        ? h("p", {}, level)
        : h("div", { class: "filters" }, h("div", {}, h("label", { for: "log-level" }, "From level"),
            h("select", { id: "log-level", value: level, disabled: !canAct(), onchange: set },
                LEVELS.map((name) => h("option", { value: name }, name))),
            h("p", { class: "small" }, "Until the next start; log.level of the configuration holds then."))));
}

function about() {
    const { status, session } = live;
    const link = (href, text) => h("a", { href }, text);
    return section("About", facts([
        ["Inlet", status.version ?? session?.version], ["Started", when(status.started_at)],
        ["You may", session?.access === "read" ? "look" : "look and act"],
        ["For programs", [
            link("/api/v1/openapi.json", "OpenAPI"), ", ", link("/metrics", "metrics"), ", ", link("/readyz", "readyz"),
        ]],
    ]));
}
