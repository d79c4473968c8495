// The actions of the page, each with its question.
import { post } from "./api.js";
import { h, toast } from "./dom.js";
import { andMore, bytes, count } from "./format.js";
import { live } from "./live.js";
import { confirm, muted, name } from "./parts.js";

const WORDS = {
    retry: ["Retry", "Sends failed, expired and cancelled files again, and tries waiting files now."],
    cancel: ["Cancel", "Stops queued and running deliveries. The source files stay where they are."],
    forget: [
        "Forget",
        "Removes ended files and their receipts from the journal. Source files that are still there count as new.",
    ],
    first: ["Send first", "Sends waiting files before all others of their destinations."],
    leave: ["Leave in place", "Changes no file. These files no longer wait for an answer."],
    aside: [
        "Move aside",
        "Moves duplicates to the archive of their watched folder, and rejected files to its quarantine. A file that is "
        + "being written, or has changed, stays.",
    ],
    remove: [
        "Remove with proof",
        "Removes each source once its destinations have proved, now, that they have its content. Without a proof it "
        + "stays, and its page says why.",
    ],
};
/** The orders with their verbs, in the order of their buttons. */
export const ORDERS = ["retry", "first", "leave", "aside", "remove", "cancel", "forget"]
    .map((order) => [order, WORDS[order][0]]);
/** Orders to an agent of the fleet that ask first. */
const STOPS = {
    pause: [
        "Pause",
        "Running transfers finish. No new ones start until you resume, even after a restart. It admits new files.",
    ],
    drain: [
        "Drain",
        "It takes no new files, and sends those that it has. Its shares go to the other agents. Undrain takes it back.",
    ],
};
const HARMLESS = ["retry", "first", "leave"];
/** For orders on a selection, in milliseconds: the agent asks its journal about each file. */
const LONG = 3600000;
const LIMITS = ["auto", "off", "0", "1MiB/s", "5MiB/s", "20MiB/s"];

/** Runs `work`, and shows the result. Resolves with the answer, or with null after an error. */
export async function attempt(work) {
    try {
        const answer = await work();
        if (answer?.message) toast(answer.message, answer.done === false ? "bad" : "good");
        return answer;
    } catch (error) {
        toast(error.message, "bad");
        return null;
    }
}

/** Asks `question`, then posts. Resolves with the answer, or with null after a no or an error. */
async function attemptAfter(question, path, body, patience) {
    return await confirm(question) && attempt(() => post(path, body, patience));
}

/** Where the action itself is to cancel, the button for no has another word. */
function choices(action, verb, things) {
    if (action === "cancel") return { yes: verb && `${verb} ${things}`, no: "Go back", tone: "bad" };
    return { yes: verb, tone: HARMLESS.includes(action) ? null : "bad" };
}

/** `Move 37 files, 1 GiB aside?` */
function question(verb, things) {
    const [first, ...rest] = verb.split(" ");
    return [first, things, ...rest].join(" ") + "?";
}

export function onJob(action, job) {
    const [verb, meaning] = WORDS[action];
    return attemptAfter({
        title: question(verb, `job ${job.job}`), ...choices(action, verb, "job"),
        body: [h("p", {}, name(job.path)), muted(meaning)],
    }, `jobs/${job.job}/${action}`);
}

/** Asks the agent for the files of a selection, shows them, and acts only after a yes. */
export async function onSelection(action, selection) {
    const [verb, meaning] = WORDS[action];
    const wish = { states: [], labels: {}, ...selection };
    const plan = await attempt(() => post(`queue/${action}?dry_run=1`, wish, LONG));
    if (!plan) return null;
    // A yes is about what the question has named: not about files that came or ended while it was open.
    const meant = wish.jobs ? wish : { ...wish, upto: plan.upto, ended_until: plan.asked_at };
    const more = andMore(plan.matched - plan.files.length);
    const report = await attemptAfter({
        title: question(verb, `${count(plan.matched, "file")}, ${bytes(plan.bytes)}`),
        ...choices(action, plan.matched ? verb : null, "files"),
        body: [
            muted(meaning),
            h("ul", { class: "files" }, plan.files.map((file) =>
                h("li", {}, name(file.path), h("span", { class: "small" }, ` ${bytes(file.size)}, ${file.state}`)))),
            more ? h("p", {}, more) : null,
            ...left(plan.skipped).map((why) => muted(`Not for ${why}`)),
        ],
    }, `queue/${action}`, meant, LONG);
    if (report) toast(result(verb, report), report.done ? "good" : "bad");
    return report;
}

const left = (skipped) => Object.entries(skipped ?? {}).map(([why, files]) => `${count(files, "file")} (${why})`);

function result(verb, { done, skipped, waits_for }) {
    const others = left(skipped).join(", ");
    const waits = (waits_for ?? []).map((why) => `; ${why}`).join("");
    return `${verb}: ${count(done, "file")} done` + (others ? `; skipped: ${others}` : "") + waits;
}

export function clearQueue() {
    return attemptAfter({
        title: "Clear the queue?",
        yes: "Clear the queue", tone: "bad",
        body: h("p", {}, `Cancels ${count(live.status.queue.total, "delivery", "deliveries")}, waiting or running. `
            + "The source files stay where they are, and you can retry each one."),
    }, "queue/clear");
}

const ofPlace = (place) => (place === null ? "" : "?destination=" + encodeURIComponent(place));

/** place: a destination's name, or null for all of them. */
export const resume = (place) => attempt(() => post("resume" + ofPlace(place)));

/** Ends a limit that was set by hand. */
export const lift = (place) => attempt(() => post("limits", { limit: "auto", destination: place }));

export function pause(place) {
    return attemptAfter({
        title: `Pause ${place ?? "all destinations"}?`, yes: "Pause",
        body: h("p", {}, "Running transfers finish. No new ones start until you resume, even after a restart. "
            + "Inlet still admits new files."),
    }, "pause" + ofPlace(place));
}

export async function setLimit(place, standing) {
    const control = h("input", {
        id: "limit", name: "limit", required: true, autofocus: true, autocomplete: "off", list: "limits",
        placeholder: "5MiB/s, off, 0 or auto", "aria-describedby": "limit-note",
    });
    const answer = await confirm({
        title: `Bandwidth limit for ${place ?? "all destinations together"}`, yes: "Set limit",
        fields: [
            h("label", { for: "limit" }, "Limit"), control,
            h("datalist", { id: "limits" }, LIMITS.map((value) => h("option", { value }))),
            h("p", { id: "limit-note", class: "muted" },
                "off: no limit. 0: send nothing. auto: the configured limit. A limit lasts until auto or the next "
                + "start. For a permanent limit, edit the configuration."),
        ],
        body: standing ? h("p", {}, `Now: ${standing}`) : null,
    });
    return answer && attempt(() => post("limits", { limit: answer.limit.trim(), destination: place }));
}

export function resumeRoot(root) {
    return attemptAfter({
        title: "Resume watching this folder?", yes: "Resume",
        body: [
            h("p", {}, name(root.path)), h("p", {}, root.state),
            muted("First check that the folder is the right one, for example that its disk is mounted."),
        ],
    }, "roots/resume", { text: root.path });
}

/** agent: its name in the fleet. */
export function orderAgent(order, agent) {
    const [path, body] = ["fleet/order", { agent, order }];
    if (!STOPS[order]) return attempt(() => post(path, body));
    const [verb, meaning] = STOPS[order];
    return attemptAfter(
        { title: `${verb} this agent?`, yes: verb, body: [h("p", {}, name(agent)), muted(meaning)] }, path, body);
}
