// The views, in the order of their links.
import { cards } from "./cards.js";
import { config } from "./config.js";
import { destinations } from "./destinations.js";
import { files } from "./files.js";
import { log } from "./log.js";
import { overview } from "./overview.js";
import { roots } from "./roots.js";
import { route } from "./route.js";

/**
 * Each has a `path` (after `#/` in its address), a `key` (pressed after g), a `title`, and `render(page)`, which
 * returns its nodes. Optional: `load(page)` reads its data, `log(page, event)` and `status(page)` handle changes, and
 * `drawn(page)` runs after each drawing. `page.data` belongs to the view while it is open.
 */
export const VIEWS = [overview, cards, files, destinations, roots, route, log, config];
