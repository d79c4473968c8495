// What would be done with a file.
import { post } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import { badge, choice, facts, field, muted, name, section, table, texts } from "./parts.js";

export const route = {
    path: "route", key: "r", title: "Route tester",
    render: (page) => h("div", { key: "route" },
        muted("Type a path: which route takes it, why, and under which key it is stored. Nothing is sent."),
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
        field("Below", choice({ id: "root", name: "root" }, [...folders, ["", "none: the path is whole"]])),
        field("Size in bytes",
            h("input", { id: "size", name: "size", type: "number", min: 0, step: 1, placeholder: "as it is" })),
        h("button", { type: "submit", class: "primary" }, "Test"));
}

async function ask(page, event) {
    event.preventDefault();
    const { path, root, size } = Object.fromEntries(new FormData(event.target));
    try {
        const isWhole = path.startsWith("/");
        if (!root && !isWhole) throw new Error("Without a folder the path must be whole: begin it with /.");
        const wish = { path };
        if (!isWhole) wish.root = root;
        if (size !== "") wish.size = Number(size);
        Object.assign(page.data, { answer: await post("route", wish), asked: path, fault: null });
    } catch (error) {
        Object.assign(page.data, { answer: null, fault: error.message });
    }
    page.redraw();
}

function answer({ answer, asked }) {
    const title = answer.matched ? `Route ${answer.route} takes it`
        : answer.route ? `Route ${answer.route} is its own, and refuses it` : "No route takes it";
    const rows = (answer.deliveries ?? []).map((delivery) => ({
        key: delivery.destination,
        cells: [delivery.destination, h("code", {}, name(delivery.key ?? "–")), delivery.after ?? "–"],
    }));
    return h("div", { role: "status", key: "answer" }, section("Answer",
        h("p", { class: "sentence" },
            badge(answer.matched ? "taken" : "not taken", answer.matched ? "good" : "waiting"), " ", title),
        facts([
            ["Path", name(asked)], ["Watched folder", answer.root ? name(answer.root) : "none"],
            ["Category", answer.category], ["Media type", answer.media_type],
        ]),
        sentences("Why", answer.why),
        rows.length ? table("Where it would go", [["Destination"], ["Key"], ["After"]], rows) : null,
        sentences("Assumed", answer.assumed)));
}

const sentences = (title, lines) => (lines?.length ? [h("h3", {}, title), texts(lines)] : null);
