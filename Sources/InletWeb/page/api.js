const BASE = "/api/v1/";

/** What the agent, or the way to it, said instead of an answer. */
export class Refusal extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

const heard = { login: () => {} };

/** Calls `login` when an answer says that one is needed. */
export function listen(handlers) { Object.assign(heard, handlers); }

async function ask(path, options) {
    let response;
    try {
        response = await fetch(path, {
            credentials: "same-origin", cache: "no-store", redirect: "error",
            signal: AbortSignal.timeout(60000), ...options,
        });
    } catch {
        throw new Refusal(0, "away", "Inlet does not answer: it is stopped, or the network is away");
    }
    const type = response.headers.get("content-type") || "";
    let body = null;
    try {
        body = type.includes("json") ? await response.json() : await response.text();
    } catch {
        throw new Refusal(0, "away", "the answer broke off");
    }
    if (response.ok) return body;
    if (response.status === 401 && body?.error === "login_needed") heard.login();
    throw new Refusal(
        response.status, body?.error ?? "http", body?.message ?? `the agent answered with ${response.status}`);
}

/** `path` below the API's base; `query`'s empty values are left out. */
export function get(path, query) {
    const given = Object.entries(query || {}).filter(([, value]) => value !== "" && value != null);
    const text = new URLSearchParams(given).toString();
    return ask(BASE + path + (text ? "?" + text : ""), {});
}

export const login = (secret) => post("login", { secret });
export const logout = () => post("logout");

export function post(path, body) {
    // X-Inlet cannot be sent from another site without being asked for first.
    const headers = { "Content-Type": "application/json", "X-Inlet": "1" };
    return ask(BASE + path, { method: "POST", headers, body: JSON.stringify(body ?? {}) });
}
