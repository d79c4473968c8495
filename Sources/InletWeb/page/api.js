// Questions and orders to the agent.

const BASE = "/api/v1/";

/** For each request: with the cookie of the session, to the agent and nobody else, and never out of a cache. */
export const GUARDED = { credentials: "same-origin", cache: "no-store", redirect: "error" };

/** What the agent, or the way to it, said instead of an answer. */
class Refusal extends Error {
    constructor(status, code, message) {
        super(message);
        Object.assign(this, { status, code });
    }
}

let loginIsNeeded = () => {};

/** Calls `heard` when an answer says that a login is needed. */
export function onLogin(heard) { loginIsNeeded = heard; }

async function ask(path, options) {
    let response;
    try {
        response = await fetch(BASE + path, { ...GUARDED, signal: AbortSignal.timeout(60000), ...options });
    } catch {
        throw new Refusal(0, "away", "Inlet does not answer: it is stopped, or the network is away");
    }
    const { status } = response;
    const isJSON = response.headers.get("content-type")?.includes("json");
    let body;
    try {
        body = isJSON ? await response.json() : await response.text();
    } catch {
        throw new Refusal(0, "away", "the answer broke off");
    }
    if (response.ok) return body;
    if (status === 401 && body?.error === "login_needed") loginIsNeeded();
    throw new Refusal(status, body?.error ?? "http", body?.message ?? `the agent answered with ${status}`);
}

/** `path` below the API's base; `query`'s empty values are left out. */
export function get(path, query) {
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== "" && value != null);
    return ask(path + (given.length ? "?" + new URLSearchParams(given) : ""));
}

export function post(path, body) {
    // X-Inlet cannot be sent from another site without being asked for first.
    const headers = { "Content-Type": "application/json", "X-Inlet": "1" };
    return ask(path, { method: "POST", headers, body: JSON.stringify(body ?? {}) });
}
