// The rate in the last hour, as a picture and in words.
import { h } from "./dom.js";
import { bytes, clock, number, rate, span } from "./format.js";
import { live } from "./live.js";

const [WIDTH, HEIGHT] = [720, 120];

/** A round number of bytes per second, at or above the highest point. */
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

/** The agent knows no rates from before its start, nor that of a step that is not over. */
export function words(points, { from, step_ms: step }) {
    const begin = new Date(from).getTime();
    const time = (index) => new Date(begin + index * step);
    const [start, end] = [new Date(live.status?.started_at ?? from), time(points.length)];
    if (end <= start) return "No data yet: the agent has just started";
    const since = start > time(0) ? `since the start at ${clock(start)}` : "in the last hour";
    const total = (points.reduce((sum, value) => sum + value, 0) * step) / 1000;
    if (total === 0) return `Nothing sent ${since}`;
    const peak = Math.max(0, ...points);
    // The first step may begin before the start.
    const highest = `peak ${rate(peak)} at ${clock(Math.max(start, time(points.indexOf(peak))))}`;
    return `Now ${rate(points.at(-1))} · ${highest} · ${bytes(total)} ${since}`;
}

export function graph(rates) {
    const points = rates.total;
    const top = ceiling(Math.max(1, ...points));
    const grid = [0.25, 0.5, 0.75].map((part) =>
        h("line", { x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part, class: "grid" }));
    const drawing = {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
        "aria-label": "Rate in the last hour. " + words(points, rates),
    };
    return h("figure", { class: "graph" },
        h("div", { class: "plot" },
            h("p", { class: "axis", "aria-hidden": "true" }, h("span", {}, rate(top)), h("span", {}, number(0))),
            h("svg", drawing, grid,
                h("path", { class: "area", d: path(points, top, WIDTH, HEIGHT, true) }),
                h("path", { class: "line", d: path(points, top, WIDTH, HEIGHT, false) }))),
        h("p", { class: "axis x", "aria-hidden": "true" },
            h("span", {}, `${span(3600000)} ago`), h("span", {}, `${span(1800000)} ago`), h("span", {}, "now")),
        h("figcaption", {}, words(points, rates)));
}

/** A small graph without words. */
export function spark(points) {
    const top = Math.max(1, ...points);
    return h("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", "aria-hidden": "true" },
        h("path", { class: "line", d: path(points, top, 120, 24, false) }));
}
