// The watched folders, and their files that are not complete yet.
import { resumeRoot } from "./actions.js";
import { h } from "./dom.js";
import { andMore, count, number, span } from "./format.js";
import { live } from "./live.js";
import { actions, badge, button, facts, isolated, muted, name, small, table, when } from "./parts.js";

const MODES = {
    inotify: "events (inotify)", fanotify: "events (fanotify)", poll: "polling", mixed: "events and polling",
};
const MEANS = { starting: "Inlet is listing its files", missing: "Inlet watches it as soon as it appears" };

export const view = {
    render: () => {
        const all = live.status.roots;
        if (!all.length) return muted("Set watch in the configuration: Inlet watches no folders.");
        return h("ul", { class: "cards wide", key: "cards" }, all.map(card));
    },
};

function card(root) {
    const [state, ...why] = root.state.split(": ");
    const reason = why.join(": ");
    return h("li", { key: root.path, class: "card" },
        h("h2", {}, name(root.path)),
        h("p", {}, badge(state, state === "paused" ? "bad" : null), " ", reason
            ? h("span", { class: "why" }, isolated(reason)) : h("span", { class: "small" }, meaning(root, state))),
        root.quiet_since ? h("p", {}, badge("quiet", "waiting"), " since ", when(root.quiet_since)) : null,
        facts([
            ["Share", root.place ? h("a", { href: "#/fleet" }, name(root.place)) : null],
            ["Mode", MODES[root.mode] ?? root.mode], ["Watches", root.watches == null ? null : number(root.watches)],
            ["Folders", number(root.directories)],
            ["Polled", root.polled ? `${count(root.polled, "folder")}, whose changes raise no events` : "none"],
            ["Last event", lastEvent(root)],
            ["Last file", root.last_file_at ? when(root.last_file_at, true) : null],
            ["Expected", root.expect ? `a file every ${root.expect}` : null],
            ["Not complete yet", number(root.settling)], ["Ignored", number(root.ignored)],
        ]),
        // The fleet or its marker decides about a share.
        state === "paused" && !root.place ? actions(button("Resume…", () => resumeRoot(root))) : null,
        root.unsettled.length ? settling(root) : null);
}

const meaning = ({ place }, state) =>
    (place && state === "watching" ? "This agent lists the share" : MEANS[state] ?? "");

// An agent without a mode reports no events either.
const lastEvent = (root) =>
    (root.last_event ? when(root.last_event, true) : root.mode ? "none yet" : null);

function settling(root) {
    const rows = root.unsettled.map((file) => ({
        key: file.path,
        cells: [name(file.path), because(file), file.held_by ? name(file.held_by) : "–", span(file.waiting_ms)],
    }));
    const more = andMore(root.settling - rows.length);
    return h("div", {},
        table(`Not complete yet (${count(root.settling, "file")})`,
            [["File"], ["Why"], ["Open in"], ["Waited"]], rows),
        more ? small(more) : null);
}

function because(file) {
    if (file.writer) return "a program has it open for writing";
    return isolated(file.waits_for) ?? "it must stay unchanged a little longer";
}
