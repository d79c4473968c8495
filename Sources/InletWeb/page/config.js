// The configuration, and what the agent is.
import { attempt } from "./actions.js";
import { get, post } from "./api.js";
import { fragment, h } from "./dom.js";
import { live } from "./live.js";
import {
    actions, badge, button, canAct, choice, confirm, facts, field, isolated, isReader, name, reading, section, small,
    table, when,
} from "./parts.js";
import { LEVELS, plain } from "./text.js";

export const config = {
    path: "config", key: "c", title: "Configuration",
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
    if (!shown) return reading(page);
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
    const value = (held) => name(held == null ? "–" : plain(held));
    const effect = (when) => (when === "restart" ? badge("at the next start", "waiting") : badge("now", "good"));
    const changes = (report.changes ?? []).map((change) => ({
        key: change.path,
        cells: [h("code", {}, change.path), value(change.from), value(change.to), effect(change.effect)],
    }));
    return section("What came of it",
        h("p", {}, report.done ? badge("done", "good") : badge("not done", "bad"), " ", isolated(report.message)),
        report.errors?.length ? h("div", { role: "alert", key: "faults" }, report.errors.map(fault)) : null,
        changes.length ? table("Changes", [["Key"], ["From"], ["To"], ["Takes effect"]], changes) : null);
}

/** As a compiler tells it: the place, the sentence, and the line with a caret below the place. */
function fault({ file, line, column, message, excerpt }) {
    const place = [file, line || null, line && column ? column : null].filter((part) => part !== null).join(":");
    return h("div", { class: "config-fault" },
        h("p", {}, h("code", {}, name(place)), ": ", isolated(message)),
        excerpt ? h("pre", { tabindex: 0, role: "group", "aria-label": `Line ${line}` }, excerpt) : null);
}

function logging(page) {
    const { level } = page.data;
    if (!level) return null;
    const set = async (event) => {
        await attempt(() => post("log/level", { level: event.target.value }));
        await page.load();
    };
    return section("Log level", isReader()
        ? h("p", {}, level)
        : h("div", { class: "filters" },
            field("From level", choice({ id: "log-level", value: level, disabled: !canAct(), onchange: set }, LEVELS),
                null, small("Until the next start; log.level of the configuration holds then."))));
}

function about() {
    const { status, session } = live;
    const link = (href, text) => h("a", { href }, text);
    return section("About", facts([
        ["Inlet", status.version ?? session?.version], ["Started", when(status.started_at)],
        ["You may", isReader() ? "look" : "look and act"],
        ["For programs", [
            link("/api/v1/openapi.json", "OpenAPI"), ", ", link("/metrics", "metrics"), ", ", link("/readyz", "readyz"),
        ]],
    ]));
}
