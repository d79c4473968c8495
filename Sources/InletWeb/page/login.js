// The login page.
import { post } from "./api.js";
import { byId, h } from "./dom.js";
import { live } from "./live.js";

const NAMES = { token: "Token", password: "Password", either: "Password or token" };
const WHERE = {
    token: "It is dashboard.token of the agent's configuration; dashboard.read_only_token lets you look.",
    password: "It is dashboard.password of the agent's configuration.",
    either: "They are dashboard.password and dashboard.token of the agent's configuration; "
        + "read_only_token lets you look.",
};
let busy = false;

async function submit(event, done) {
    event.preventDefault();
    const { secret } = event.target.elements;
    if (busy) return;
    busy = true;
    let fault = "";
    try {
        await post("login", { secret: secret.value });
        secret.value = "";
        done();
    } catch (error) {
        fault = error.message;
        secret.select();
    }
    busy = false;
    const place = byId("fault");
    if (place) place.textContent = fault;
}

/** Calls `done` once the agent has let us in. */
export function login(done) {
    const kind = NAMES[live.session?.login] ? live.session.login : "either";
    return h("form", { class: "login", onsubmit: (event) => submit(event, done) },
        h("label", { for: "secret" }, NAMES[kind]),
        h("input", {
            id: "secret", name: "secret", type: "password", required: true, autocomplete: "current-password",
            "aria-describedby": "secret-note fault",
        }),
        h("p", { id: "secret-note", class: "muted" }, WHERE[kind]),
        h("p", { id: "fault", role: "alert", class: "fault", own: true }),
        h("button", { type: "submit", class: "primary" }, "Log in"));
}
