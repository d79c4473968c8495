// Numbers and times in the browser's language; no other module formats them. Words and units stay English, and so do
// lengths of time: Intl.RelativeTimeFormat would say "vor 3 Minuten" in an English sentence.

const LANGUAGES = navigator.languages;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const TWO = "2-digit";

const decimals = (most, least) =>
    new Intl.NumberFormat(LANGUAGES, { maximumFractionDigits: most, minimumFractionDigits: least });
const [WHOLE, TENTHS, ONE_TENTH, THOUSANDTHS] = [decimals(0, 0), decimals(1, 0), decimals(1, 1), decimals(3, 3)];
const PERCENT = new Intl.NumberFormat(LANGUAGES, { style: "percent" });
const DATE = new Intl.DateTimeFormat(LANGUAGES, { year: "numeric", month: TWO, day: TWO });
const TIME = new Intl.DateTimeFormat(LANGUAGES, { hour: TWO, minute: TWO, second: TWO });

export const number = (value) => WHOLE.format(value ?? 0);
export const percent = (share) => PERCENT.format(Math.floor(share) / 100);
export const count = (value, one, many) => `${number(value)} ${value === 1 ? one : many ?? one + "s"}`;

/** `isMoving`: a value of each second keeps its decimal, so that the text beside it stays in place. */
export function bytes(count, isMoving) {
    if (count == null) return "–";
    let [value, unit] = [Math.abs(count), 0];
    while (Math.round(value) >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
    const format = unit === 0 || value >= 100 ? WHOLE : isMoving ? ONE_TENTH : TENTHS;
    return `${format.format(value)} ${UNITS[unit]}`;
}

export const rate = (perSecond, isMoving) => `${bytes(Math.round(perSecond || 0), isMoving)}/s`;

/** The end of a shortened list; null for a complete one. */
export const andMore = (left) => (left > 0 ? `and ${number(left)} more` : null);

/** A field of an event or of the configuration, in its machine form. */
export const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

/** A length of time in its two largest units: `3 min 4 s`. */
export function span(ms) {
    if (ms == null || !isFinite(ms)) return "–";
    const seconds = Math.max(0, Math.round(ms / 1000));
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([size]) => seconds >= size);
    if (first < 0) return ms < 1000 ? `under ${number(1)} s` : `${number(0)} s`;
    const [size, name] = parts[first];
    const rest = parts[first + 1];
    const more = rest && seconds < size * 10 ? Math.floor((seconds % size) / rest[0]) : 0;
    return `${number(Math.floor(seconds / size))} ${name}` + (more ? ` ${number(more)} ${rest[1]}` : "");
}

/** How long a step took: `0.042 s`, `3.5 s`, `3 min 4 s`. */
export const took = (ms) =>
    (ms < 10000 ? `${(ms < 1000 ? THOUSANDTHS : ONE_TENTH).format(ms / 1000)} s` : span(ms));

/** `in 3 min`, `4 s ago`. */
export function relative(time) {
    const ms = new Date(time) - Date.now();
    if (isNaN(ms)) return "–";
    return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** The local time, with the date unless it is today. */
export function clock(time) {
    const date = new Date(time);
    if (!time || isNaN(date)) return "–";
    const hour = TIME.format(date);
    return date.toDateString() === new Date().toDateString() ? hour : `${DATE.format(date)} ${hour}`;
}
