// The screen beside the card readers: one tile a card, read from three metres. It changes nothing.
import { post } from "./api.js";
import { announce, byId, h, paint } from "./dom.js";
import { span } from "./format.js";
import { button, isolated, name } from "./parts.js";
import { isAudible, play, switchOn } from "./sound.js";
import { askForCards, distrust, told } from "./told.js";
import { cardTone, content, copied, lines, verdict } from "./verdict.js";

/** Between two questions, in milliseconds. */
const PAUSE = 2000;
const TICK = 500;
/** With so many tiles the page scrolls: smaller ones could not be read. */
const MANY = 7;

// The token is in the part of the address that browsers send to nobody, and leaves it at once.
let secret = tokenOf(location.hash);
let [isOut, isAsking, fault, next] = [false, false, null, 0];
let [awake, staysAwake] = [null, true];
/** What a card's tile said before, by stay: a sound belongs to a change. */
let before = null;

function tokenOf(hash) {
    const text = hash.startsWith("#token=") ? hash.slice(7) : "";
    if (!text) return null;
    history.replaceState(null, "", location.pathname + location.search);
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

async function ask() {
    if (isAsking) return;
    isAsking = true;
    clearTimeout(next);
    let due = performance.now() + PAUSE;
    try {
        await askForCards();
        [isOut, fault] = [false, null];
    } catch (error) {
        fault = error;
        if (error.status === 401 && await logIn()) due = 0;
    }
    isAsking = false;
    draw();
    if (!fault) {
        sound();
        guard();
    }
    next = setTimeout(ask, Math.max(0, due - performance.now()));
}

/** With the token of the link: an agent that restarted has forgotten all sessions. */
async function logIn() {
    isOut = secret === null;
    if (isOut) return false;
    try {
        await post("login", { secret });
        return true;
    } catch (error) {
        fault = error;
        // A wrong one is not tried again: each attempt makes the next ones wait.
        if (error.status === 401) [secret, isOut] = [null, true];
        return false;
    }
}

/** Covers the page by itself, should no script run any more. Each answer puts it off; a drawing that fails does not. */
const guard = () => byId("guard").replaceChildren(...(distrust() ? [] : [h("div", { class: "guard" })]));

function sound() {
    if (distrust()) return;
    const now = new Map(told.report.cards.map((card) => [card.stay, card]));
    const news = before ? [...now.values()].filter((card) => cardTone(card) !== before.get(card.stay)) : [];
    before = new Map([...now].map(([stay, card]) => [stay, cardTone(card)]));
    if (news.length) announce(news.map((card) => `${card.roll ?? card.name}: ${card.headline}`).join(". "));
    if (news.some((card) => card.needs_somebody)) play("alarm");
    else if (news.some((card) => card.safe)) play("safe");
}

function draw() {
    // A device that sleeps shows its last picture when it wakes, before any script runs: that one must be grey.
    const why = document.hidden ? "This screen was asleep" : distrust();
    document.body.className = why ? "lost" : "";
    if (why) byId("guard").replaceChildren();
    paint(byId("top"), h("h1", {}, "Cards"), tools());
    paint(byId("main"), isOut ? form() : [why ? warning(why) : null, told.report ? tiles(told.report, !why) : null]);
}

function warning(why) {
    return h("p", { class: "warning", role: "alert", key: "warning" }, h("strong", {}, `${why}: trust nothing here`),
        fault?.status ? h("span", {}, isolated(`Inlet answers: ${fault.message}`)) : null);
}

function tiles({ cards }, isTrusted) {
    if (!cards.length) return h("p", { class: "empty", key: "empty" }, isTrusted ? "No card is in a reader" : "");
    return h("ul", { class: `tiles n${Math.min(cards.length, MANY)}`, key: "tiles" }, cards.map((card) =>
        h("li", { key: card.stay, class: `tile ${isTrusted ? cardTone(card) : "unknown"}` },
            h("h2", {}, card.roll ? [isolated(card.roll), " · "] : null, name(card.name)),
            verdict(card, isTrusted),
            isTrusted ? copied(card) : null,
            h("p", { class: "about" }, about(card, isTrusted)),
            isTrusted ? lines(card.lines) : null)));
}

function about(card, isTrusted) {
    const left = isTrusted && card.seconds_left ? `${span(card.seconds_left * 1000)} left` : null;
    // A desktop mounts a card by its label, which is above.
    const place = card.mount.endsWith("/" + card.name) ? null : card.mount;
    const parts = [left, content(card), card.camera ?? card.system, place];
    return parts.filter(Boolean).map((part, index) => [index ? " · " : "", isolated(part)]);
}

function tools() {
    const isWhole = document.fullscreenElement !== null;
    const change = () => (isWhole ? document.exitFullscreen() : document.documentElement.requestFullscreen());
    return h("div", { class: "tools" },
        isAudible() ? null : button("Tap to switch the sound on", hear, { class: "sound", key: "sound" }),
        staysAwake ? null : h("p", { key: "awake" },
            "Switch sleep off on this device, or serve this page over HTTPS: the browser lets the screen sleep."),
        document.fullscreenEnabled
            ? button(isWhole ? "Leave full screen" : "Full screen", change, { key: "whole" }) : null);
}

function form() {
    const submit = (event) => {
        event.preventDefault();
        secret = event.target.elements.secret.value;
        ask();
    };
    return h("form", { class: "login", key: "login", onsubmit: submit },
        h("label", { for: "secret" }, "Open this screen by its link, or type the kiosk's token"),
        h("input", {
            id: "secret", name: "secret", type: "password", required: true, autocomplete: "current-password",
        }),
        h("button", { type: "submit" }, "Log in"),
        h("p", { class: "fault", role: "alert" }, fault && fault.code !== "login_needed" ? fault.message : ""));
}

async function hear() {
    await switchOn().catch(() => {});
    draw();
}

async function stayAwake() {
    if (document.hidden || awake) return;
    try {
        awake = await navigator.wakeLock.request("screen");
        awake.addEventListener("release", () => { awake = null; });
        staysAwake = true;
    } catch {
        // Browsers without HTTPS have none.
        staysAwake = false;
    }
    draw();
}

function wakeOrSleep() {
    draw();
    if (document.hidden) return;
    stayAwake();
    ask();
}

function begin() {
    if (!new URLSearchParams(location.search).has("kiosk")) return location.replace("/#/cards");
    document.addEventListener("visibilitychange", wakeOrSleep);
    addEventListener("pageshow", wakeOrSleep);
    addEventListener("pagehide", () => { document.body.className = "lost"; });
    document.addEventListener("fullscreenchange", draw);
    document.addEventListener("pointerdown", hear);
    setInterval(draw, TICK);
    hear();
    wakeOrSleep();
}

begin();
