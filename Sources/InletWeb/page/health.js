// What needs a person, as the agent says it: nothing of that is decided here.
import { count } from "./text.js";

const TONES = { ok: "good", attention: "waiting", trouble: "bad" };
const PLACES = {
    agent: ["#/log", "Log"], journal: ["#/log?level=error", "Log"], dashboard: ["#/config", "Configuration"],
    destination: ["#/destinations", "Details"], limit: ["#/destinations", "Limits"], root: ["#/roots", "Look at it"],
    queue: ["#/files?state=pending", "Look at them"], notices: ["#/log?level=warning", "Log"],
};

/** Findings of a status: `tone`, `text`, `remedy`, where there is more. */
export function findings({ health }) {
    return (health?.findings ?? []).map(({ state, text, remedy, about, name }) => {
        const files = [`#/files?state=${encodeURIComponent(name)}`, "Look at them"];
        const [href, link] = about === "files" ? files : PLACES[about] ?? [];
        return { tone: state === "ok" ? "neutral" : TONES[state] ?? "bad", text, remedy, href, link };
    });
}

/** The number of problems that need a person. */
export const needing = (status) => status?.health?.needing ?? 0;

/** One sentence: is it healthy. */
export function sentence({ health }) {
    if (!health) return { tone: "waiting", text: "The agent does not say how it is." };
    // A state that this page does not know is no good news.
    return { tone: TONES[health.state] ?? "bad", text: health.sentence };
}

/** The same without the numbers of each second, to be said. */
export function spoken(status) {
    const number = needing(status);
    if (!number) return "Nothing needs you.";
    return `${count(number, "thing")} ${number === 1 ? "needs" : "need"} you: ${findings(status)[0]?.text}.`;
}

/** How the sum that must hold is made up: everything seen ends somewhere. */
export function balance(status) {
    const terms = Object.entries({ ...status.files, ignored: status.ignored }).filter(([, files]) => files > 0);
    const sum = terms.reduce((total, [, files]) => total + files, 0);
    return { terms, sum, holds: sum === status.seen };
}
