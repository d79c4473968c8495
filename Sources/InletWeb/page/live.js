// The present state of the agent, and its age.
import { get } from "./api.js";
import { stream } from "./stream.js";

const MOST_EVENTS = 1000;
const POINTS = 360;

/**
 * `connection`: starting, live, polling, lost, resting (hidden) or out (logged out). Times are by the browser's clock.
 */
export const live = {
    connection: "starting", since: Date.now(), heardAt: 0, statusAt: 0, restartedAt: null, why: null,
    session: null, status: null, rates: null, events: [], level: "info",
};

let tell = () => {};
let [lastSeq, run, wait, fresh] = [null, null, 0, null];
const samples = new Map();

/** Calls `heard(what, data)`; `what` is status, rates, log, connection, or again after a full reload of the data. */
export function subscribe(heard) { tell = heard; }

function connect(state) {
    if (live.connection === state) return;
    [live.connection, live.since] = [state, state === "lost" ? live.heardAt || Date.now() : Date.now()];
    tell("connection", state);
}

export function start() {
    stop("starting");
    again();
}

/** Ends all requests, and drops the data. */
export function stop(state) {
    run?.abort();
    Object.assign(live, { status: null, rates: null, events: [], restartedAt: null });
    [lastSeq, wait] = [null, 0];
    samples.clear();
    connect(state);
}

/** A hidden page needs no stream: a browser opens only a few connections to one address. */
export function rest() {
    if (!run || live.connection === "out") return;
    run.abort();
    run = null;
    connect("resting");
}

export function wake() {
    if (live.connection === "resting") again();
}

/** Subscribes to events of this level and above. */
export function hearFrom(level) {
    if (live.level === level) return;
    live.level = level;
    if (live.connection !== "live") return;
    run.abort();
    again();
}

function again() {
    run = new AbortController();
    connect("starting");
    follow(run.signal);
}

async function follow(signal) {
    while (!signal.aborted) {
        const ended = new AbortController();
        const both = AbortSignal.any([ended.signal, signal]);
        let status = 0;
        try {
            await stream(lastSeq, live.level, (name, data, id) => {
                if (!both.aborted) hear(name, data, id, () => ended.abort());
            }, both);
        } catch (error) {
            status = error.status ?? 0;
        }
        ended.abort();
        if (signal.aborted) return;
        // The agent may still answer: perhaps a proxy holds back the stream, or there are too many streams.
        wait = Math.min(30000, Math.max(1000, wait * 2));
        if (status === 401) await get("status").catch(() => {});
        await poll(Date.now() + wait * (0.8 + Math.random() * 0.4), signal);
    }
}

async function poll(until, signal) {
    do {
        try {
            const status = await get("status");
            if (signal.aborted) return;
            const isBack = live.connection === "lost";
            const isKnown = live.connection === "polling" && live.status?.started_at === status.started_at;
            if (!isKnown) await readAll(signal);
            connect("polling");
            takeStatus(status);
            if (isBack) {
                // The stream may work again, too.
                wait = 0;
                return;
            }
        } catch (error) {
            if (signal.aborted) return;
            // A refusal of the agent has the remedy in its message.
            live.why = error.status ? error.message : null;
            connect("lost");
        }
        await new Promise((done) => setTimeout(done, Math.min(2000, Math.max(200, until - Date.now()))));
    } while (Date.now() < until && !signal.aborted);
}

function hear(name, data, id, giveUp) {
    live.heardAt = Date.now();
    if (name === "hello") {
        // A new agent counts from 1 again.
        if (data.seq < lastSeq) lastSeq = null;
        fresh = [];
        readAll(run.signal).then(() => {
            wait = 0;
            connect("live");
        }, giveUp);
    } else if (name === "log") {
        lastSeq = Number(id ?? data.seq);
        fresh?.push(data);
        takeEvents([data]);
        tell("log", data);
    } else if (name === "status") takeStatus(data);
    else if (name === "rates") takeRates(data);
}

/** After each new connection: reads what the page missed, and drops what no longer holds. */
async function readAll(signal) {
    const [session, status, rates, log] = await Promise.all([
        get("session"), get("status"), get("rates").catch(() => null),
        get("log", { level: "debug", limit: 300 }).catch(() => []),
    ]);
    if (signal.aborted) return;
    Object.assign(live, { session, rates });
    takeStatus(status);
    takeEvents(log);
    fresh = null;
    tell("again");
}

function takeStatus(status) {
    live.heardAt = live.statusAt = Date.now();
    if (live.status && live.status.started_at !== status.started_at) {
        live.restartedAt = status.started_at;
        samples.clear();
        // Drops the former agent's events, and keeps those that arrived after the new one's hello.
        live.events = [...(fresh ?? [])];
    }
    measure(status.in_flight ?? []);
    live.status = status;
    tell("status", status);
}

function takeEvents(events) {
    const known = new Set(live.events.map((event) => event.seq));
    const more = events.filter((event) => !known.has(event.seq));
    if (!more.length) return;
    live.events = live.events.concat(more).sort((a, b) => a.seq - b.seq).slice(-MOST_EVENTS);
}

function takeRates(data) {
    const rates = live.rates;
    if (!rates) return;
    const had = rates.total.length;
    // The step's start shows how many steps are missing, or that this one is known.
    const steps = Math.round((new Date(data.ts) - new Date(rates.from)) / rates.step_ms) - (had - 1);
    if (steps < 1) return;
    const add = (points, value) => [...points, ...Array(steps - 1).fill(0), value].slice(-POINTS);
    rates.total = add(rates.total, data.total);
    for (const name of Object.keys({ ...rates.destinations, ...data.destinations })) {
        rates.destinations[name] = add(rates.destinations[name] ?? Array(had).fill(0), data.destinations?.[name] ?? 0);
    }
    const gone = had + steps - rates.total.length;
    rates.from = new Date(new Date(rates.from).getTime() + gone * rates.step_ms).toISOString();
    tell("rates", rates);
}

const transferKey = (transfer) => `${transfer.job} ${transfer.destination}`;

/** Keeps the progress of transfers, to compute their rates over the last seconds. */
function measure(transfers) {
    const now = performance.now();
    const running = new Set(transfers.map(transferKey));
    for (const key of samples.keys()) if (!running.has(key)) samples.delete(key);
    for (const transfer of transfers) {
        const points = samples.get(transferKey(transfer)) ?? [];
        // A new attempt.
        if (points.length && points.at(-1).sent > transfer.sent) points.length = 0;
        points.push({ now, sent: transfer.sent });
        samples.set(transferKey(transfer), points.filter((point) => now - point.now < 12000));
    }
}

/** Bytes per second of a transfer, or null while that is unknown. */
export function speed(transfer) {
    const points = samples.get(transferKey(transfer)) ?? [];
    if (points.length < 2) return null;
    const [first, last] = [points[0], points.at(-1)];
    const seconds = (Math.max(last.now, performance.now() - 2500) - first.now) / 1000;
    return seconds < 0.5 ? null : (last.sent - first.sent) / seconds;
}
