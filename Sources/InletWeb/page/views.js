// The views, in the order of their links. The script of each comes when it is opened first.

/**
 * Each has a `path` (after `#/` in its address), a `key` (pressed after g), a `title`, and a `script` with its `view`:
 * `render(page)` returns its nodes. Optional: `load(page)` reads its data, `log(page, event)` and `status(page)` handle
 * changes, and `drawn(page)` runs after each drawing. `page.data` belongs to the view while it is open.
 * A view that `needs` a member of the status is offered only where that is there.
 */
export const VIEWS = [
    { path: "", key: "o", title: "Overview", script: () => import("./overview.js") },
    { path: "cards", key: "a", title: "Cards", script: () => import("./cards.js") },
    { path: "files", key: "f", title: "Files", script: () => import("./files.js") },
    { path: "destinations", key: "d", title: "Destinations", script: () => import("./destinations.js") },
    { path: "roots", key: "w", title: "Watch roots", script: () => import("./roots.js") },
    { path: "route", key: "r", title: "Route tester", script: () => import("./route.js") },
    { path: "fleet", key: "t", title: "Fleet", needs: "fleet", script: () => import("./fleet.js") },
    { path: "log", key: "l", title: "Log", script: () => import("./log.js") },
    { path: "config", key: "c", title: "Configuration", script: () => import("./config.js") },
];

/** The views that this agent has. */
export const offered = (status) => VIEWS.filter(({ needs }) => !needs || status?.[needs]);

/** A file's own view, `#/files/17`. */
export const STORY = { path: "files", title: "Job", script: () => import("./story.js") };
