// Server-sent events, read with fetch: EventSource can neither continue after a given event nor say why it ended.
import { GUARDED } from "./api.js";

/** After this many milliseconds without a byte, not even a comment, the agent counts as gone. */
const SILENCE = 40000;

/**
 * Reads `/api/v1/events` until it ends.
 * @param last the id of the last event that arrived, or null
 * @param level the lowest level of events
 * @param heard called with (event, data, id), and with "beat" for any bytes
 * @returns a promise that always rejects; the error's `status` is that of the answer, if there was one
 */
export async function stream(last, level, heard, signal) {
    const quiet = new AbortController();
    let alarm = 0;
    const alive = () => {
        clearTimeout(alarm);
        alarm = setTimeout(() => quiet.abort(), SILENCE);
    };
    alive();
    try {
        const headers = { Accept: "text/event-stream" };
        if (last !== null) headers["Last-Event-ID"] = String(last);
        const response = await fetch("/api/v1/events?level=" + level, {
            ...GUARDED, headers, signal: AbortSignal.any([quiet.signal, signal]),
        });
        if (!response.ok || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
            throw Object.assign(new Error("not an event stream"), { status: response.status });
        }
        await read(response.body.pipeThrough(new TextDecoderStream()).getReader(), (name, data, id) => {
            alive();
            heard(name, data, id);
        });
    } finally {
        clearTimeout(alarm);
    }
    throw new Error("the stream ended");
}

async function read(reader, heard) {
    let [rest, event] = ["", blank()];
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard("beat");
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const raw of lines) {
            const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
            if (line !== "") take(line, event);
            else {
                if (event.data.length) heard(event.name, JSON.parse(event.data.join("\n")), event.id);
                event = blank();
            }
        }
    }
}

const blank = () => ({ name: "message", data: [], id: null });

function take(line, event) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event.name = value;
    else if (field === "data") event.data.push(value);
    else if (field === "id") event.id = value;
}
