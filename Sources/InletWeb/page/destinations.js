// The destinations, their limits and windows.
import { pause, resume, setLimit } from "./actions.js";
import { fragment, h } from "./dom.js";
import { clock, count, rate } from "./format.js";
import { spark, words } from "./graph.js";
import { live } from "./live.js";
import { actions, badge, button, facts, isolated, section, small, table, when } from "./parts.js";

const MEANS = {
    up: "it answers", down: "no answer; Inlet retries automatically",
    "credentials refused": "update the keys; Inlet retries automatically",
    "asks for time": "it asked Inlet to send more slowly", "not asked yet": "nothing sent since the start",
    paused: "by a person; resume to send again", "not running": "start Inlet to send again",
};

export const view = {
    render: () => {
        const { destinations, limits, queue, windows } = live.status;
        // A limit without a name is for all destinations together.
        const limitOf = (name) => limitText((limits ?? []).find((limit) => (limit.destination ?? null) === name));
        const together = limitOf(null);
        return fragment(
            section("All destinations",
                facts([["Limit", together], ["Waiting", deliveries(queue.waiting)]]),
                actions(button("Set limit…", () => setLimit(null, together)),
                    button("Pause all…", () => pause(null)), button("Resume all", () => resume(null)))),
            h("ul", { class: "cards", key: "cards" }, destinations.map((place) => card(place, limitOf(place.name)))),
            windows?.length ? section("Windows", windowTable(windows)) : null);
    },
};

const deliveries = (number) => count(number, "delivery", "deliveries");

function limitText(limit) {
    if (!limit) return "none";
    const { bytes_per_second: most, why, until } = limit;
    const text = most == null ? "none" : most === 0 ? "0 (sends nothing)" : rate(most);
    const cause = {
        command: " (set by hand; lasts until auto or the next start)", schedule: " (by the schedule)",
    };
    return text + (cause[why] ?? "") + (until ? `, until ${clock(until)}` : "");
}

function card(place, limit) {
    const points = live.rates?.destinations?.[place.name];
    const files = `#/files?destination=${encodeURIComponent(place.name)}`;
    return h("li", { key: place.name, class: "card" },
        h("h2", {}, h("a", { href: files, "data-go": "" }, place.name), " ", h("span", { class: "small" }, place.type)),
        h("p", {}, badge(place.state), " ", h("span", { class: "small" }, MEANS[place.state] ?? "")),
        place.standing ? h("p", {}, isolated(place.standing)) : null,
        place.last_error ? h("p", { class: "why" }, isolated(place.last_error)) : null,
        facts([
            ["Waiting", h("a", { href: `${files}&state=pending` }, deliveries(place.waiting))],
            ["Down since", place.since ? when(place.since) : null],
            ["Next try", place.next_probe ? when(place.next_probe, true) : null],
            ["Limit", limit],
        ]),
        points ? [spark(points), small(words(points, live.rates))] : null,
        actions(
            place.state === "paused"
                ? button("Resume", () => resume(place.name)) : button("Pause…", () => pause(place.name)),
            button("Set limit…", () => setLimit(place.name, limit))));
}

function windowTable(windows) {
    const rows = windows.map(({ route, window, open, next_change }) => ({
        key: route,
        cells: [route, window, badge(open ? "open" : "closed", open ? "good" : "waiting"), when(next_change)],
    }));
    return table("Hours in which big files of a route may start", [["Route"], ["Window"], ["Now"], ["Next change"]],
        rows, { hideCaption: true });
}
