// What a person should know in five seconds.
import { fragment, h } from "./dom.js";
import { graph, words } from "./graph.js";
import { balance, findings, needing, sentence } from "./health.js";
import { live, speed } from "./live.js";
import { eventText } from "./log.js";
import { badge, filesLink, isolated, jobLink, muted, name, progress, section, small, table, when } from "./parts.js";
import { andMore, bytes, count, number, rate, span } from "./text.js";

export const overview = {
    path: "", key: "o", title: "Overview",
    render: () => {
        const status = live.status;
        return fragment(health(status), figures(status), moving(status), sent(), recent(), sum(status));
    },
};

function health(status) {
    const { tone, text } = sentence(status);
    const found = findings(status);
    const more = andMore(needing(status) - found.filter((finding) => finding.tone !== "neutral").length);
    return h("section", { class: `health ${tone}`, "aria-label": "Health", key: "health" },
        h("p", { class: "sentence" }, h("span", { class: "dot", "aria-hidden": "true" }), isolated(text)),
        h("ul", {}, found.map((finding) => h("li", { class: finding.tone, key: finding.text },
            badge({ bad: "trouble", waiting: "needs you" }[finding.tone] ?? "note", finding.tone), " ",
            name(finding.text), finding.href ? [" ", h("a", { href: finding.href }, finding.link)] : null,
            small(isolated(finding.remedy)))),
        more ? h("li", { key: "more" }, more) : null));
}

/** What moves now; where that cannot be measured, the last ten seconds. */
function pace(transfers) {
    const paces = transfers.filter((transfer) => !transfer.next_look).map(speed);
    return paces.length && !paces.includes(null) ? paces.reduce((sum, one) => sum + one) : live.rates?.total.at(-1);
}

function figures({ queue, files, bytes: sizes, in_flight }) {
    const now = pace(in_flight ?? []);
    const entry = (title, value, note, states) => h("div", { key: title },
        h("dt", {}, states ? h("a", { href: `#/files?state=${states}` }, title) : title), h("dd", {}, value),
        h("dd", { class: "small" }, note));
    const held = [
        queue.retrying ? `${queue.retrying} tried before` : null, queue.held ? `${queue.held} held for others` : null,
    ].filter(Boolean).join(", ");
    return h("dl", { class: "figures", key: "figures" },
        entry("In flight", number(queue.in_flight), now === undefined ? "deliveries" : `${rate(now)} now`),
        entry("Waiting", number(queue.waiting + queue.held), held || "deliveries", "pending"),
        entry("Failed", number(queue.failed + queue.expired),
            queue.expired ? `${queue.expired} of them expired` : "files", "failed,expired"),
        entry("Oldest", oldest(queue), queue.oldest_waiting ? "has waited" : "nothing waits"),
        entry("Delivered", number(files.delivered), bytes(sizes.delivered), "delivered"));
}

function oldest(queue) {
    if (!queue.oldest_waiting) return "–";
    // By the agent's clock at its last word, and by ours since then.
    return span((queue.oldest_waiting_ms ?? 0) + Math.max(0, Date.now() - live.statusAt));
}

function moving({ in_flight: all }) {
    if (!all?.length) return section("In flight", muted("Nothing is being sent."));
    const columns = [["File"], ["To"], ["Progress", "bars"]];
    const rows = all.slice(0, 12).map((transfer) => ({
        key: `${transfer.job} ${transfer.destination}`,
        cells: [
            jobLink(transfer.job, transfer.path), h("a", { href: "#/destinations" }, transfer.destination),
            progress(transfer),
        ],
    }));
    const more = andMore(all.length - rows.length);
    return section("In flight",
        table("Deliveries that run now", columns, rows, { hideCaption: true, class: "moving" }),
        more ? small(more) : null);
}

function sent() {
    const rates = live.rates;
    if (!rates?.total?.length) return section("Rate of the last hour", muted("Not known yet."));
    const places = Object.entries(rates.destinations ?? {});
    return section("Rate of the last hour", graph(rates), places.length
        ? h("details", {}, h("summary", {}, "By destination"), h("ul", {}, places.map(([place, points]) =>
            h("li", { key: place }, h("strong", {}, place), ": ", words(points, rates)))))
        : null);
}

function recent() {
    const events = live.events.filter((event) => event.level !== "debug" && event.event !== "transfer.progress")
        .slice(-8).reverse();
    if (!events.length) return null;
    return section("Latest",
        h("ul", { class: "latest" }, events.map((event) =>
            h("li", { key: event.seq, class: event.level }, when(event.ts), " ", eventText(event)))),
        small(h("a", { href: "#/log" }, "The whole log")));
}

function sum(status) {
    const { terms, sum, holds } = balance(status);
    const term = ([state, files], index) => {
        const text = `${number(files)} ${state}`;
        const link = state === "ignored" ? h("a", { href: "#/roots" }, text) : filesLink("state", state, text);
        return [index ? " + " : "", link];
    };
    return section("Balance",
        h("p", { class: "balance" }, h("strong", {}, count(status.seen, "file")), " seen = ",
            terms.length ? terms.map(term) : "none yet"),
        holds ? null : h("p", { class: "fault" }, `These are ${sum}: the sum does not hold. Please report this.`));
}
