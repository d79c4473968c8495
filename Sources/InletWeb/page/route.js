// The route tester: what Inlet would do with a file.
import { post } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import { badge, choice, facts, field, muted, name, section, table, texts } from "./parts.js";

export const view = {
    render: (page) => h("div", { key: "route" },
        muted("Enter a path to see its route, the reason, and the key at each destination. Nothing is sent."),
        form(page), page.data.fault ? h("p", { class: "banner bad" }, page.data.fault) : null,
        page.data.answer ? answer(page.data) : null),
};

function form(page) {
    const folders = live.status.roots.map((root) => root.path);
    return h("form", { class: "filters", onsubmit: (event) => ask(page, event) },
        field("Path", h("input", {
            id: "path", name: "path", required: true, "data-search": true, autocomplete: "off", spellcheck: "false",
            placeholder: "gigs/2026/a.mp4 or /srv/drop/a.mp4",
        }), "grow"),
        field("Watched folder", choice({ id: "root", name: "root" }, [...folders, ["", "none (absolute path)"]])),
        field("Size (bytes)",
            h("input", { id: "size", name: "size", type: "number", min: 0, step: 1, placeholder: "actual size" })),
        h("button", { type: "submit", class: "primary" }, "Test"));
}

async function ask(page, event) {
    event.preventDefault();
    const { path, root, size } = Object.fromEntries(new FormData(event.target));
    try {
        const isWhole = path.startsWith("/");
        if (!root && !isWhole) throw new Error("Choose a watched folder, or begin the path with /");
        const file = { path };
        if (!isWhole) file.root = root;
        if (size !== "") file.size = Number(size);
        Object.assign(page.data, { answer: await post("route", file), asked: path, fault: null });
    } catch (error) {
        Object.assign(page.data, { answer: null, fault: error.message });
    }
    page.redraw();
}

function answer({ answer, asked }) {
    const title = answer.matched ? `Route ${answer.route} matches`
        : answer.route ? `Route ${answer.route} matches, but rejects the file` : "No route matches";
    const rows = (answer.deliveries ?? []).map((delivery) => ({
        key: delivery.destination,
        cells: [delivery.destination, h("code", {}, name(delivery.key ?? "–")), delivery.after ?? "–"],
    }));
    return h("div", { role: "status", key: "answer" }, section("Result",
        h("p", { class: "sentence" },
            badge(answer.matched ? "accepted" : "not accepted", answer.matched ? "good" : "waiting"), " ", title),
        facts([
            ["Path", name(asked)], ["Watched folder", answer.root ? name(answer.root) : "none"],
            ["Category", answer.category], ["Media type", answer.media_type],
        ]),
        sentences("Why", answer.why),
        rows.length ? table("Destinations", [["Destination"], ["Key"], ["After"]], rows) : null,
        sentences("Assumed", answer.assumed)));
}

const sentences = (title, lines) => (lines?.length ? [h("h3", {}, title), texts(lines)] : null);
