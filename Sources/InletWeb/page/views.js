// The views, in the order of their links: a new one has its line here.
import { config } from "./config.js";
import { destinations } from "./destinations.js";
import { files } from "./files.js";
import { log } from "./log.js";
import { overview } from "./overview.js";
import { roots } from "./roots.js";
import { route } from "./route.js";

/**
 * `path`: what stands after `#/` in its address; `key`: what is pressed after g; `title`; `render(page)`: its nodes.
 * Where a view has them: `load(page)` reads what it shows, `log(page, event)` and `status(page)` hear of changes, and
 * `drawn(page)` comes after each drawing. `page.data` is the view's own while it is shown.
 */
export const VIEWS = [overview, files, destinations, roots, route, log, config];
