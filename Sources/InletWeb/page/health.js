// The health as the agent reports it: the page has no rules of its own.
import { count } from "./format.js";

const TONES = { ok: "good", attention: "waiting", trouble: "bad" };
const PLACES = {
    agent: ["#/log", "Show the log"], journal: ["#/log?level=error", "Show the log"],
    dashboard: ["#/config", "Show the configuration"], destination: ["#/destinations", "Show destinations"],
    limit: ["#/destinations", "Show limits"], root: ["#/roots", "Show watch roots"],
    queue: ["#/files?state=pending", "Show files"], notices: ["#/log?level=warning", "Show the log"],
    fleet: ["#/fleet", "Show the fleet"],
};

/** The findings of a status: `tone`, `text`, `remedy`, and a link to the view with the details. */
export function findings({ health }) {
    return (health?.findings ?? []).map(({ state, text, remedy, about, name }) => {
        const files = [`#/files?state=${encodeURIComponent(name)}`, "Show files"];
        const [href, link] = about === "files" ? files : PLACES[about] ?? [];
        return { tone: state === "ok" ? "neutral" : TONES[state] ?? "bad", text, remedy, about, name, href, link };
    });
}

/** The number of problems that need a person. */
export const needing = (status) => status?.health?.needing ?? 0;

/** The one sentence that matters most. */
export function sentence({ health }) {
    if (!health) return { tone: "waiting", text: "Update Inlet: this version does not report its health." };
    // An unknown state may be a bad one.
    return { tone: TONES[health.state] ?? "bad", text: health.sentence };
}

/** The same for screen readers, without the numbers of each second. */
export function spoken(status) {
    const number = needing(status);
    if (!number) return "No problems.";
    return `${count(number, "problem")}. The worst: ${findings(status)[0]?.text}.`;
}

/** The sum that must add up: every file that Inlet has seen is in exactly one state. */
export function balance(status) {
    const terms = Object.entries({ ...status.files, ignored: status.ignored }).filter(([, files]) => files > 0);
    const sum = terms.reduce((total, [, files]) => total + files, 0);
    return { terms, sum, holds: sum === status.seen };
}
