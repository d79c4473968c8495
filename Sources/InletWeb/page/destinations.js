import { fragment, h } from "./dom.js";
import { spark, words } from "./graph.js";
import { live } from "./live.js";
import { pause, setLimit } from "./actions.js";
import { actions, badge, button, facts, section, table, when } from "./parts.js";
import { count, rate } from "./text.js";

const MEANS = {
    up: "it answers", down: "it does not answer; it is asked again by itself",
    "credentials refused": "it answers, and refuses key or password; put them right in the configuration, then reload",
    "asks for time": "it asked us to slow down", "not asked yet": "nothing has been sent since the start",
    paused: "by a person; nothing new is begun", "not running": "the agent does not run",
};

export const destinations = {
    title: () => "Destinations",
    render: () => {
        const { destinations, limits, windows } = live.status;
        const together = (limits || []).find((limit) => !limit.destination);
        return fragment(
            section("All together",
                facts([["Limit", limitText(together)], ["Waiting", deliveries(live.status.queue.waiting)]]),
                actions(button("Set limit…", () => setLimit(null, limitText(together))),
                    button("Pause all…", () => pause(null, true)), button("Resume all", () => pause(null, false)))),
            h("ul", { class: "cards", key: "cards" }, destinations.map((place) => card(place, limits || []))),
            windows?.length ? section("Windows", windowTable(windows)) : null);
    },
};

const deliveries = (number) => count(number, "delivery", "deliveries");

function limitText(limit) {
    if (!limit || limit.bytes_per_second == null) return "none" + (limit ? standing(limit) : "");
    return (limit.bytes_per_second === 0 ? "0: nothing is sent" : rate(limit.bytes_per_second)) + standing(limit);
}

function standing({ why, until }) {
    const by = { command: " (set by hand, until auto or the next start)", schedule: " (by the schedule)" }[why] ?? "";
    return by + (until ? `, until ${until.slice(11, 16)}` : "");
}

function card(place, limits) {
    const limit = limits.find((entry) => entry.destination === place.name);
    const points = live.rates?.destinations?.[place.name];
    const isPaused = place.state === "paused";
    const waiting = `#/files?state=pending&destination=${encodeURIComponent(place.name)}`;
    return h("li", { key: place.name, class: "card" },
        h("h2", {}, h("a", { href: `#/files?destination=${encodeURIComponent(place.name)}`, "data-go": "" }, place.name), " ",
            h("span", { class: "small" }, place.type)),
        h("p", {}, badge(place.state), " ", h("span", { class: "small" }, MEANS[place.state] ?? "")),
        place.last_error ? h("p", { class: "why" }, h("bdi", {}, place.last_error)) : null,
        facts([
            ["Waiting", h("a", { href: waiting }, deliveries(place.waiting))],
            ["Asked again", place.next_probe ? when(place.next_probe, true) : null],
            ["Own limit", limit ? limitText(limit) : "none"],
        ]),
        points ? [spark(points), h("p", { class: "small" }, words(points, live.rates))] : null,
        actions(
            isPaused ? button("Resume", () => pause(place.name, false)) : button("Pause…", () => pause(place.name, true)),
            button("Set limit…", () => setLimit(place.name, limit ? limitText(limit) : "none"))));
}

function windowTable(windows) {
    return table("When big files of a route may begin", [["Route"], ["Window"], ["Now"], ["Changes"]], windows.map((entry) => ({
        key: entry.route,
        cells: [
            entry.route, entry.window, badge(entry.open ? "open" : "closed", entry.open ? "good" : "waiting"),
            when(entry.next_change),
        ],
    })), { hideCaption: true });
}
