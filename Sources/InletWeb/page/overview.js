import { fragment, h } from "./dom.js";
import { graph, words } from "./graph.js";
import { balance, findings, needing, sentence } from "./health.js";
import { live, speed } from "./live.js";
import { badge, jobLink, name, progress, section, table, when } from "./parts.js";
import { bytes, count, rate, span } from "./text.js";
import { eventText } from "./log.js";

export const overview = {
    title: () => "Overview",
    render: () => {
        const status = live.status;
        return fragment(health(status), figures(status), moving(status), sent(status), recent(), sum(status));
    },
};

function health(status) {
    const { tone, text } = sentence(status);
    const found = findings(status);
    const more = needing(status) - found.filter((finding) => finding.tone !== "neutral").length;
    return h("section", { class: `health ${tone}`, "aria-label": "Health", key: "health" },
        h("p", { class: "sentence" }, h("span", { class: "dot", "aria-hidden": "true" }), h("bdi", {}, text)),
        h("ul", {}, found.map((finding) => h("li", { class: finding.tone, key: finding.text },
            badge({ bad: "trouble", waiting: "needs you" }[finding.tone] ?? "note", finding.tone), " ",
            name(finding.text), finding.href ? [" ", h("a", { href: finding.href }, finding.link)] : null,
            h("p", { class: "small" }, h("bdi", {}, finding.remedy)))),
            more > 0 ? h("li", { key: "more" }, `and ${count(more, "more", "more")}`) : null));
}

/** What moves now; where that cannot be measured, the last ten seconds. */
function pace(transfers) {
    const paces = transfers.filter((transfer) => !transfer.next_look).map(speed);
    return paces.length && !paces.includes(null) ? paces.reduce((sum, one) => sum + one) : live.rates?.total.at(-1);
}

function figures(status) {
    const queue = status.queue;
    const now = pace(status.in_flight || []);
    const entry = (title, value, note, href) => h("div", { key: title },
        h("dt", {}, href ? h("a", { href }, title) : title), h("dd", {}, value), h("dd", { class: "small" }, note));
    const held = [
        queue.retrying ? `${queue.retrying} tried before` : null, queue.held ? `${queue.held} held for others` : null,
    ].filter(Boolean).join(", ");
    return h("dl", { class: "figures", key: "figures" },
        entry("In flight", count(queue.in_flight, "", "").trim(), now === undefined ? "deliveries" : `${rate(now)} now`),
        entry("Waiting", count(queue.waiting + queue.held, "", "").trim(), held || "deliveries", "#/files?state=pending"),
        entry("Failed", count(queue.failed + queue.expired, "", "").trim(),
            queue.expired ? `${queue.expired} of them expired` : "files", "#/files?state=failed,expired"),
        entry("Oldest", oldest(queue), queue.oldest_waiting ? "has waited" : "nothing waits"),
        entry("Delivered", count(status.files.delivered, "", "").trim(), bytes(status.bytes.delivered), "#/files?state=delivered"));
}

function oldest(queue) {
    if (!queue.oldest_waiting) return "–";
    // By the agent's clock at its last word, and by ours since then.
    return span((queue.oldest_waiting_ms ?? 0) + Math.max(0, Date.now() - live.statusAt));
}

function moving(status) {
    const all = status.in_flight || [];
    const shown = all.slice(0, 12);
    if (!all.length) {
        return section("In flight", h("p", { class: "muted" }, "Nothing is being sent."));
    }
    return section("In flight",
        table("Deliveries that run now", [["File"], ["To"], ["Progress", "bars"]], shown.map((transfer) => ({
            key: `${transfer.job} ${transfer.destination}`,
            cells: [
                jobLink(transfer.job, transfer.path),
                h("a", { href: "#/destinations" }, transfer.destination), progress(transfer),
            ],
        })), { hideCaption: true, class: "moving" }),
        all.length > shown.length ? h("p", { class: "small" }, `and ${count(all.length - shown.length, "more", "more")}`) : null);
}

function sent() {
    const rates = live.rates;
    if (!rates?.total?.length) return section("Rate of the last hour", h("p", { class: "muted" }, "Not known yet."));
    const places = Object.keys(rates.destinations || {});
    return section("Rate of the last hour", graph(rates), places.length
        ? h("details", {}, h("summary", {}, "By destination"), h("ul", {}, places.map((place) =>
            h("li", { key: place }, h("strong", {}, place), ": ", words(rates.destinations[place], rates)))))
        : null);
}

function recent() {
    const events = live.events.filter((event) => event.level !== "debug" && event.event !== "transfer.progress")
        .slice(-8).reverse();
    if (!events.length) return null;
    return section("Latest", h("ul", { class: "latest" }, events.map((event) => h("li", { key: event.seq, class: event.level },
        when(event.ts), " ", eventText(event)))), h("p", { class: "small" }, h("a", { href: "#/log" }, "The whole log")));
}

function sum(status) {
    const { terms, sum, holds } = balance(status);
    return section("Balance",
        h("p", { class: "balance" }, h("strong", {}, count(status.seen, "file")), " seen = ", terms.length
            ? terms.map(([state, files], index) => [
                index ? " + " : "", h("a", { href: state === "ignored" ? "#/roots" : `#/files?state=${state}` },
                    `${files.toLocaleString("en")} ${state}`),
            ])
            : "none yet"),
        holds ? null : h("p", { class: "fault" }, `These are ${sum}: the sum does not hold. Please report this.`));
}
