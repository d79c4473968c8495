extension WebFiles {
    /// Where files come from.
    static let scriptRoots = #"""
        import { h } from "./dom.js";
        import { live } from "./live.js";
        import { resumeRoot } from "./actions.js";
        import { actions, badge, button, facts, name, table, when } from "./parts.js";
        import { count, span } from "./text.js";
        import { eventText } from "./log.js";

        export const roots = {
            title: () => "Watch roots",
            render: () => {
                const all = live.status.roots;
                if (!all.length) return h("p", { class: "muted" }, "No folder is watched.");
                return h("ul", { class: "cards wide", key: "cards" }, all.map(card));
            },
        };

        function card(root) {
            const [state, ...why] = root.state.split(": ");
            const reason = why.join(": ");
            const last = lastEvent(root.path);
            return h("li", { key: root.path, class: "card" },
                h("h2", {}, name(root.path)),
                h("p", {}, badge(state, state === "paused" ? "bad" : null), " ", h("span", { class: "why" }, h("bdi", {}, reason))),
                facts([
                    ["Mode", mode(root)], ["Watches", watches(root)], ["Folders", root.directories.toLocaleString("en")],
                    ["Polled", root.polled ? `${root.polled.toLocaleString("en")} of them: their changes raise no events` : "none"],
                    ["Not settled yet", root.settling.toLocaleString("en")], ["Ignored", root.ignored.toLocaleString("en")],
                    ["Last event", last ? [when(last.ts), " ", eventText(last, "root")] : "none since the page began to listen"],
                ]),
                state === "paused" ? actions(button("Resume…", () => resumeRoot(root))) : null,
                root.unsettled.length ? settling(root) : null);
        }

        function mode(root) {
            if (!root.directories) return "–";
            if (root.polled === 0) return "events";
            return root.polled >= root.directories ? "polling" : "events and polling";
        }

        const watches = (root) => Math.max(0, root.directories - root.polled).toLocaleString("en");

        /** The newest event of a folder that is still in memory. */
        function lastEvent(path) {
            const isBelow = (text) => text === path || text?.startsWith(path.endsWith("/") ? path : path + "/");
            return live.events.findLast((event) => isBelow(event.root) || isBelow(event.path));
        }

        function settling(root) {
            const rows = root.unsettled.map((file) => ({
                key: file.path,
                cells: [
                    name(file.path), because(file), file.held_by ? name(file.held_by) : "–",
                    file.waiting_ms == null ? "–" : span(file.waiting_ms),
                ],
            }));
            const more = root.settling - rows.length;
            return h("div", {},
                table(`Not settled yet, and why (${count(root.settling, "file")})`, [["File"], ["Why"], ["Open in"], ["For"]], rows),
                more > 0 ? h("p", { class: "small" }, `and ${count(more, "more", "more")}`) : null);
        }

        function because(file) {
            if (file.writer) return "a program has it open for writing";
            return file.waits_for ? h("bdi", {}, file.waits_for) : "it must be quiet a little longer";
        }

        """#
}
