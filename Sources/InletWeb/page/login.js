// The login page.
import { post } from "./api.js";
import { byId, h } from "./dom.js";
import { live } from "./live.js";

const NAMES = { token: "Token", password: "Password", either: "Password or token" };
const WHERE = {
    token: "Set it in the configuration under dashboard: token, or read_only_token for read-only access.",
    password: "Set it in the configuration under dashboard: password.",
    either: "Set them in the configuration under dashboard: password, token, "
        + "and read_only_token for read-only access.",
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
        fault = error.code === "login_needed" ? `Wrong ${NAMES[kind()].toLowerCase()}` : error.message;
        secret.select();
    }
    busy = false;
    const place = byId("fault");
    if (place) place.textContent = fault;
}

const kind = () => (NAMES[live.session?.login] ? live.session.login : "either");

/** Calls `done` after a successful login. */
export function login(done) {
    if (live.session?.login === "link") {
        return h("p", {}, "On the machine that runs Inlet, run ", h("code", {}, "inlet open"),
            " as root or as its user. It prints a link that logs this browser in.");
    }
    return h("form", { class: "login", onsubmit: (event) => submit(event, done) },
        h("label", { for: "secret" }, NAMES[kind()]),
        h("input", {
            id: "secret", name: "secret", type: "password", required: true, autocomplete: "current-password",
            "aria-describedby": "secret-note fault",
        }),
        h("p", { id: "secret-note", class: "muted" }, WHERE[kind()]),
        h("p", { id: "fault", role: "alert", class: "fault", own: true }),
        h("button", { type: "submit", class: "primary" }, "Log in"));
}
