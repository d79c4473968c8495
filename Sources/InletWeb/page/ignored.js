// The ignored files of the watched folders, by a look at these.
import { get } from "./api.js";
import { h } from "./dom.js";
import { count, number } from "./format.js";
import { live } from "./live.js";
import { button, choice, field, isolated, muted, name, searchForm, small, table } from "./parts.js";

const LIMIT = 200;

/** The folder in the address, or the first one. */
const folder = (page) => page.query.get("root") ?? live.status.roots[0]?.path;

export async function loadIgnored(page) {
    const root = folder(page);
    page.data.ignored = null;
    if (!root) return;
    const answer = await get("ignored", { root, limit: LIMIT });
    // A slow answer to an earlier request.
    if (root === folder(page)) page.data.ignored = { root, ...answer };
}

export function ignored(page) {
    const roots = live.status.roots;
    if (!roots.length) return muted("Set watch in the configuration: Inlet watches no folders.");
    const known = page.data.ignored;
    const options = roots.map((root) => [root.path, `${root.path} (${number(root.ignored)})`]);
    return h("div", { key: "ignored" },
        searchForm("Ignored files",
            field("Watched folder", choice({
                id: "root", value: folder(page), onchange: (event) => page.setQuery({ root: event.target.value }),
            }, options), "grow"),
            button("Look again", () => page.load())),
        known ? list(known) : muted(page.error ? "" : "Looking…"));
}

function list({ files, more, looked }) {
    const note = `By name, size and times: Inlet reads no file for this. Names looked at: ${number(looked)}.`;
    if (!files.length) return h("div", {}, muted("Inlet ignores nothing here"), small(note));
    const rows = files.map((file) => ({
        key: file.path, cells: [[name(file.path), file.folder ? " and everything in it" : null], isolated(file.reason)],
    }));
    return h("div", {},
        table(`Ignored: ${count(files.length, "name")}${more ? ", and there may be more" : ""}`, [["File"], ["Why"]],
            rows, { class: "list" }),
        small(note));
}
