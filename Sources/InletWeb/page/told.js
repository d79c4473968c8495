// The cards as the agent reported them last, and whether that still holds: an old answer must not look like a new one.
import { get } from "./api.js";
import { clock } from "./format.js";

/** An answer holds for so many milliseconds after its request. The promise is 10 s, and timers may be late. */
const LIFE = 9000;
const PATIENCE = 4000;
/** An answer's own time may be so far behind the browser's. */
const SKEW = 60000;

/** `report`: the last answer. `asked`: the time of its request, by the browser's clock. */
export const told = { report: null, asked: 0 };

// By the monotonic clock, which a person cannot set; and the last change of the agent's time.
let [begun, time, changed] = [0, null, 0];

/** Asks the agent. Rejects without an answer. */
export async function askForCards() {
    const [asked, now] = [Date.now(), performance.now()];
    const report = await get("cards", null, PATIENCE);
    // A later question was answered first.
    if (now < begun) return;
    if (report.at !== time) [time, changed] = [report.at, asked];
    begun = now;
    Object.assign(told, { report, asked });
}

/** The reason why the last answer no longer holds; null while it holds. */
export function distrust() {
    const now = Date.now();
    const age = now - told.asked;
    if (!told.report) return "NO ANSWER FROM INLET";
    // A clock that was set back makes the age negative.
    if (age < 0 || Math.max(age, performance.now() - begun) > LIFE) {
        return `NO ANSWER FROM INLET since ${clock(told.asked)}`;
    }
    if (now - changed > LIFE) return `INLET'S CLOCK HAS STOOD STILL since ${clock(changed)}`;
    if (told.asked - new Date(time) > SKEW) {
        return `INLET'S ANSWER IS OLD: it is from ${clock(time)}, and this screen's clock shows ${clock(now)}`;
    }
    return null;
}
