// Requests to the agent.

const BASE = "/api/v1/";

/** The options of each request: with the session's cookie, to the agent only, never from a cache. */
export const GUARDED = { credentials: "same-origin", cache: "no-store", redirect: "error" };

/** A refusal of the agent, or a failure to reach it. */
class Refusal extends Error {
    constructor(status, code, message, differences) {
        super(message);
        Object.assign(this, { status, code, differences });
    }
}

/** How long an answer may take, in milliseconds. */
const PATIENCE = 60000;

let loginIsNeeded = () => {};

/** Calls `heard` when the agent demands a login. */
export function onLogin(heard) { loginIsNeeded = heard; }

async function ask(path, patience, options) {
    let response;
    try {
        response = await fetch(BASE + path, { ...GUARDED, signal: AbortSignal.timeout(patience), ...options });
    } catch {
        throw new Refusal(0, "away", "Check that Inlet runs and that the network is up: no answer");
    }
    const { status } = response;
    const isJSON = response.headers.get("content-type")?.includes("json");
    let body;
    try {
        body = isJSON ? await response.json() : await response.text();
    } catch {
        throw new Refusal(0, "away", "Try again: the answer was cut short");
    }
    if (response.ok) return body;
    if (status === 401 && body?.error === "login_needed") loginIsNeeded();
    const message = body?.message ?? `Inlet answered with HTTP status ${status}`;
    throw new Refusal(status, body?.error ?? "http", message, body?.differences);
}

/** `path`: below the API's base. Empty values of `query` are left out. */
export function get(path, query, patience = PATIENCE) {
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== "" && value != null);
    return ask(path + (given.length ? "?" + new URLSearchParams(given) : ""), patience);
}

export function post(path, body, patience = PATIENCE) {
    // A page of another site cannot send X-Inlet without a preflight request.
    const headers = { "Content-Type": "application/json", "X-Inlet": "1" };
    return ask(path, patience, { method: "POST", headers, body: JSON.stringify(body ?? {}) });
}
