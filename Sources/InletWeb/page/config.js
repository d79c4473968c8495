// The configuration, the receivers of notifications, the log level, and the agent's version.
import { attempt } from "./actions.js";
import { get, post } from "./api.js";
import { changeForm, lists, loadForm, takeForm } from "./change.js";
import { fragment, h } from "./dom.js";
import { plain } from "./format.js";
import { live } from "./live.js";
import { qr } from "./qr.js";
import {
    actions, badge, button, canAct, choice, confirm, facts, field, isolated, isReader, name, reading, section, small,
    table, when,
} from "./parts.js";
import { LEVELS } from "./states.js";

export const view = {
    load: async (page) => {
        const none = (error) => {
            if (error.status !== 404) throw error;
            return { text: "" };
        };
        const [shown, level, receivers, form] = await Promise.all([
            get("config").catch(none), get("log/level").catch(() => null),
            isReader() ? [] : get("receivers").catch(() => []), get("config/form").catch(() => null), loadForm(page),
        ]);
        Object.assign(page.data, { shown, level: level?.level, receivers });
        takeForm(page, form);
    },
    render: (page) => page.query.get("change")
        ? fragment(changeForm(page))
        : fragment(
            result(page.data.reload), lists(page), file(page), notifications(page), logging(page), about()),
};

function file(page) {
    const { shown } = page.data;
    if (!shown) return reading(page);
    return section("In use",
        facts([["File", name(shown.file ?? "–")], ["Loaded", when(shown.loaded_at)], ["Secrets", "hidden as ***"]]),
        actions(button("Reload…", () => reload(page))),
        h("pre", { tabindex: 0, "aria-label": "Configuration" }, shown.text));
}

async function reload(page) {
    const sure = await confirm({
        title: "Reload the configuration?", yes: "Reload",
        body: h("p", {}, "Running transfers continue. If the file has an error, the configuration in use stays."),
    });
    if (!sure) return;
    page.data.reload = await attempt(() => post("reload"));
    await page.load();
}

function result(report) {
    if (!report) return null;
    const value = (held) => name(held == null ? "–" : plain(held));
    const effect = (when) => (when === "restart" ? badge("after a restart", "waiting") : badge("now", "good"));
    const changes = (report.changes ?? []).map((change) => ({
        key: change.path,
        cells: [h("code", {}, change.path), value(change.from), value(change.to), effect(change.effect)],
    }));
    return section("Result",
        h("p", {}, report.done ? badge("applied", "good") : badge("not applied", "bad"), " ", isolated(report.message)),
        report.errors?.length ? h("div", { role: "alert", key: "faults" }, report.errors.map(fault)) : null,
        changes.length ? table("Changes", [["Key"], ["From"], ["To"], ["Takes effect"]], changes) : null);
}

/** An error as a compiler prints it: place, message, and the line with a caret. */
function fault({ file, line, column, message, excerpt }) {
    const place = [file, line || null, line && column ? column : null].filter((part) => part !== null).join(":");
    return h("div", { class: "config-fault" },
        h("p", {}, h("code", {}, name(place)), ": ", isolated(message)),
        excerpt ? h("pre", { tabindex: 0, role: "group", "aria-label": `Line ${line}` }, excerpt) : null);
}

function notifications(page) {
    const { receivers } = page.data;
    if (!receivers?.length) return null;
    const rows = receivers.map((receiver) => ({
        key: receiver.name,
        cells: [name(receiver.name), receiver.kind, receiver.events.join(", "), receiver.subscribe
            ? button("Subscribe a phone…", () => subscribe(receiver), { disabled: !canAct() }) : "–"],
    }));
    return section("Notifications", table("Receivers", [["Name"], ["Kind"], ["Sent"], ["Phone"]], rows));
}

function subscribe({ name: receiver, subscribe: address }) {
    return confirm({
        title: `Subscribe a phone to ${receiver}`, no: "Close",
        body: h("div", {},
            h("p", {}, "Scan this in the app, or enter the address:"), qr(address), h("p", {}, name(address)),
            small("Everyone who has it can read and send these notifications.")),
    });
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
            field("Lowest level", choice({ id: "log-level", value: level, disabled: !canAct(), onchange: set }, LEVELS),
                null, small("Lasts until the next start. For a permanent level, edit the configuration."))));
}

function about() {
    const { status, session } = live;
    const link = (href, text) => h("a", { href }, text);
    return section("About", facts([
        ["Inlet", status.version ?? session?.version], ["Started", when(status.started_at)],
        ["Access", isReader() ? "read-only" : "full"],
        ["For programs", [
            link("/api/v1/openapi.json", "OpenAPI"), ", ", link("/metrics", "metrics"), ", ", link("/readyz", "readyz"),
        ]],
    ]));
}
