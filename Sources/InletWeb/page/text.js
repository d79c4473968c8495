// Numbers, times and states in words.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count) {
    if (count == null) return "–";
    let [value, unit] = [Math.abs(count), 0];
    while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
    const text = unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "");
    return `${text} ${UNITS[unit]}`;
}

export const rate = (perSecond) => `${bytes(Math.round(perSecond || 0))}/s`;
export const number = (value) => (value ?? 0).toLocaleString("en");
export const count = (value, one, many) => `${number(value)} ${value === 1 ? one : many ?? one + "s"}`;

/** The end of a list that shows only its beginning; null where nothing is left out. */
export const andMore = (left) => (left > 0 ? `and ${number(left)} more` : null);

/** What a field of an event or of the configuration holds. */
export const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

/** A length of time, in its two largest units. */
export function span(ms) {
    if (ms == null || !isFinite(ms)) return "–";
    const seconds = Math.max(0, Math.round(ms / 1000));
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([size]) => seconds >= size);
    if (first < 0) return ms < 1000 ? "under 1 s" : "0 s";
    const [size, name] = parts[first];
    const rest = parts[first + 1];
    const more = rest && seconds < size * 10 ? Math.floor((seconds % size) / rest[0]) : 0;
    return `${Math.floor(seconds / size)} ${name}` + (more ? ` ${more} ${rest[1]}` : "");
}

export const took = (ms) => (ms < 10000 ? `${(ms / 1000).toFixed(ms < 1000 ? 3 : 1)} s` : span(ms));

/** `in 3 min`, `4 s ago`. */
export function relative(time) {
    const ms = new Date(time) - Date.now();
    if (isNaN(ms)) return "–";
    return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

const two = (number) => String(number).padStart(2, "0");

/** The time of day here, with the date unless it is today. */
export function clock(time) {
    const date = new Date(time);
    if (!time || isNaN(date)) return "–";
    const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    const hour = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    return date.toDateString() === new Date().toDateString() ? hour : `${day} ${hour}`;
}

/** What a state is to a person: good, moving, waiting, bad or neutral. */
export const TONES = {
    delivered: "good", duplicate: "good", up: "good", watching: "good",
    pending: "waiting", ready: "waiting", open: "waiting", parked: "waiting", paused: "waiting",
    claimed: "moving", starting: "moving", "not asked yet": "neutral", "asks for time": "waiting",
    failed: "bad", rejected: "bad", expired: "bad", down: "bad", "credentials refused": "bad",
    failing: "bad", missing: "bad", "not running": "bad",
};

/** What a state of a file means. */
export const MEANS = {
    pending: "queued, being sent, or waiting for its time",
    delivered: "every destination proved the bytes",
    duplicate: "the same content is there already",
    rejected: "did not pass its route's rules",
    failed: "given up; retry sends it again",
    expired: "not delivered within its route's time",
    cancelled: "cancelled by a person",
    gone: "was no longer there when its turn came",
    superseded: "changed before it was delivered; the new one is a file of its own",
};

export const STATES = Object.keys(MEANS);
/** Of log lines, the least important first. */
export const LEVELS = ["debug", "info", "warning", "error"];
