import { post } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import { badge, facts, name, section, table } from "./parts.js";

export const route = {
    title: () => "Route tester",
    render: (page) => h("div", { key: "route" },
        h("p", { class: "muted" }, "Type a path: which route takes it, why, and under which key it is stored. Nothing is sent."),
        form(page), page.data.fault ? h("p", { class: "banner bad" }, page.data.fault) : null,
        page.data.answer ? answer(page.data) : null),
};

function form(page) {
    return h("form", { class: "filters", onsubmit: (event) => ask(page, event) },
        h("div", { class: "grow" }, h("label", { for: "path" }, "Path"), h("input", {
            id: "path", name: "path", required: true, "data-search": true, autocomplete: "off", spellcheck: "false",
            placeholder: "gigs/2026/a.mp4 or /srv/drop/a.mp4",
        })),
        h("div", {}, h("label", { for: "root" }, "Below"), h("select", { id: "root", name: "root" },
            live.status.roots.map((root) => h("option", { value: root.path }, root.path)),
            h("option", { value: "" }, "none: the path is whole"))),
        h("div", {}, h("label", { for: "size" }, "Size in bytes"),
            h("input", { id: "size", name: "size", type: "number", min: 0, step: 1, placeholder: "as it is" })),
        h("button", { type: "submit", class: "primary" }, "Test"));
}

async function ask(page, event) {
    event.preventDefault();
    const { path, root, size } = Object.fromEntries(new FormData(event.target));
    try {
        if (!root && !path.startsWith("/")) throw new Error("Without a folder the path must be whole: begin it with /.");
        const wish = { path };
        if (root && !path.startsWith("/")) wish.root = root;
        if (size !== "") wish.size = Number(size);
        page.data.answer = await post("route", wish);
        page.data.asked = path;
        page.data.fault = null;
    } catch (error) {
        Object.assign(page.data, { answer: null, fault: error.message });
    }
    page.redraw();
}

function answer({ answer, asked }) {
    const title = answer.matched ? `Route ${answer.route} takes it`
        : answer.route ? `Route ${answer.route} is its own, and refuses it` : "No route takes it";
    const rows = (answer.deliveries || []).map((delivery) => ({
        key: delivery.destination,
        cells: [delivery.destination, h("code", {}, name(delivery.key ?? "–")), delivery.after ?? "–"],
    }));
    return h("div", { role: "status", key: "answer" }, section("Answer",
        h("p", { class: "sentence" }, badge(answer.matched ? "taken" : "not taken", answer.matched ? "good" : "waiting"), " ", title),
        facts([
            ["Path", name(asked)], ["Watched folder", answer.root ? name(answer.root) : "none"],
            ["Category", answer.category], ["Media type", answer.media_type],
        ]),
        sentences("Why", answer.why),
        rows.length ? table("Where it would go", [["Destination"], ["Key"], ["After"]], rows) : null,
        sentences("Assumed", answer.assumed)));
}

function sentences(title, texts) {
    return texts?.length ? [h("h3", {}, title), h("ul", {}, texts.map((text) => h("li", {}, h("bdi", {}, text))))] : null;
}
