import { h } from "./dom.js";
import { live } from "./live.js";
import { bytes, clock, rate } from "./text.js";

const [WIDTH, HEIGHT] = [720, 120];

/** A round number of bytes per second at or above the highest point. */
function ceiling(peak) {
    let top = 1024;
    while (top < peak) top *= 2;
    return top;
}

function path(points, top, width, height, closed) {
    const step = width / Math.max(1, points.length - 1);
    const places = points.map((value, index) =>
        `${(index * step).toFixed(1)} ${(height - (value / top) * height).toFixed(1)}`);
    return "M" + places.join("L") + (closed ? `L${width} ${height}L0 ${height}Z` : "");
}

/** What a line of points says. */
export function summary(points, rates) {
    const seconds = rates.step_ms / 1000;
    const total = points.reduce((sum, value) => sum + value, 0) * seconds;
    const peak = Math.max(0, ...points);
    const at = new Date(new Date(rates.from).getTime() + points.indexOf(peak) * rates.step_ms);
    return { now: points.at(-1) ?? 0, peak, at, total };
}

/** An agent knows nothing of before its start, nor yet of the step that is not over. */
export function words(points, rates) {
    const { now, peak, at, total } = summary(points, rates);
    const [from, start] = [new Date(rates.from), new Date(live.status?.started_at ?? rates.from)];
    const end = new Date(from.getTime() + points.length * rates.step_ms);
    if (end <= start) return "Not known yet: the agent has just started.";
    const since = start > from ? `since the start at ${clock(start)}` : "in the last hour";
    if (total === 0) return `Nothing was sent ${since}, until ${clock(end)}.`;
    return `${rate(now)} until ${clock(end)}; highest ${rate(peak)} at ${clock(at)}; ${bytes(total)} ${since}.`;
}

export function graph(rates) {
    const points = rates.total;
    const top = ceiling(Math.max(1, ...points));
    const grid = [0.25, 0.5, 0.75].map((part) =>
        h("line", { x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part, class: "grid" }));
    return h("figure", { class: "graph" },
        h("div", { class: "plot" },
            h("p", { class: "axis", "aria-hidden": "true" }, h("span", {}, rate(top)), h("span", {}, "0")),
            h("svg", {
                viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
                "aria-label": "Rate of the last hour. " + words(points, rates),
            },
            grid, h("path", { class: "area", d: path(points, top, WIDTH, HEIGHT, true) }),
            h("path", { class: "line", d: path(points, top, WIDTH, HEIGHT, false) }))),
        h("p", { class: "axis x", "aria-hidden": "true" },
            h("span", {}, "an hour ago"), h("span", {}, "30 min"), h("span", {}, "now")),
        h("figcaption", {}, words(points, rates)));
}

/** A small one, without words of its own. */
export function spark(points) {
    const top = Math.max(1, ...points);
    return h("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", "aria-hidden": "true" },
        h("path", { class: "line", d: path(points, top, 120, 24, false) }));
}
