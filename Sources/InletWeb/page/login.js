import { login as enter } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";

const NAMES = { token: "Token", password: "Password", either: "Password or token" };
const WHERE = {
    token: "It is dashboard.token of the agent's configuration; dashboard.read_only_token lets you look.",
    password: "It is dashboard.password of the agent's configuration.",
    either: "They are dashboard.password and dashboard.token of the agent's configuration; read_only_token lets you look.",
};
let [fault, busy] = ["", false];

/** Calls `done` once the agent has let us in. */
export function login(done) {
    const kind = NAMES[live.session?.login] ? live.session.login : "either";
    const submit = async (event) => {
        event.preventDefault();
        const field = event.target.elements.secret;
        if (busy) return;
        busy = true;
        try {
            await enter(field.value);
            fault = "";
            field.value = "";
            done();
        } catch (error) {
            fault = error.message;
            field.select();
        } finally {
            busy = false;
        }
        place(fault);
    };
    return h("form", { class: "login", onsubmit: submit },
        h("label", { for: "secret" }, NAMES[kind]),
        h("input", {
            id: "secret", name: "secret", type: "password", required: true, autocomplete: "current-password",
            "aria-describedby": "secret-note fault",
        }),
        h("p", { id: "secret-note", class: "muted" }, WHERE[kind]),
        h("p", { id: "fault", role: "alert", class: "fault", own: true }),
        h("button", { type: "submit", class: "primary" }, "Log in"));
}

function place(text) {
    const node = document.getElementById("fault");
    if (node) node.textContent = text;
}
