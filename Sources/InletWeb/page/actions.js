// What a person can have done, with the question before it.
import { post } from "./api.js";
import { h, toast } from "./dom.js";
import { live } from "./live.js";
import { confirm, muted, name } from "./parts.js";
import { andMore, bytes, count } from "./text.js";

const WORDS = {
    retry: ["Retry", "Sends again what failed, expired or was cancelled; what waits is tried now."],
    cancel: ["Cancel", "Stops what is queued or being sent. The source files stay where they are."],
    forget: [
        "Forget",
        "Takes ended files out of the journal, with their receipts. A file that is still there counts as new.",
    ],
};
const LIMITS = ["auto", "off", "0", "1MiB/s", "5MiB/s", "20MiB/s"];

/** Does something; says what came of it. Resolves with the answer, or null. */
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

/** Asks `question`, and then posts. Resolves with the answer, or with null where it was not done. */
async function attemptAfter(question, path, body) {
    return await confirm(question) && attempt(() => post(path, body));
}

export function onJob(action, job) {
    const [verb, meaning] = WORDS[action];
    return attemptAfter({
        title: `${verb} job ${job.job}?`, yes: verb, tone: action === "retry" ? null : "bad",
        body: [h("p", {}, name(job.path)), muted(meaning)],
    }, `jobs/${job.job}/${action}`);
}

/** Asks the agent what a selection is, shows that, and only then does it. */
export async function onSelection(action, selection) {
    const [verb, meaning] = WORDS[action];
    const wish = { states: [], labels: {}, ...selection };
    const plan = await attempt(() => post(`queue/${action}?dry_run=1`, wish));
    if (!plan) return null;
    const more = andMore(plan.matched - plan.files.length);
    const report = await attemptAfter({
        title: `${verb} ${count(plan.matched, "file")}, ${bytes(plan.bytes)}?`,
        yes: plan.matched ? verb : null, tone: action === "retry" ? null : "bad",
        body: [
            muted(meaning),
            h("ul", { class: "files" }, plan.files.map((file) =>
                h("li", {}, name(file.path), h("span", { class: "small" }, ` ${bytes(file.size)}, ${file.state}`)))),
            more ? h("p", {}, more) : null,
        ],
    }, `queue/${action}`, wish);
    if (report) toast(told(verb, report), report.done ? "good" : "bad");
    return report;
}

function told(verb, { done, skipped, waits_for }) {
    const left = Object.entries(skipped ?? {}).map(([why, files]) => `${count(files, "file")} ${why}`).join(", ");
    const waits = (waits_for ?? []).map((why) => `; ${why}`).join("");
    return `${verb}: ${count(done, "file")} done` + (left ? `; skipped: ${left}` : "") + waits;
}

export function clearQueue() {
    return attemptAfter({
        title: `Clear the queue: cancel ${count(live.status.queue.total, "delivery", "deliveries")}?`,
        yes: "Clear the queue", tone: "bad",
        body: h("p", {}, "Everything that waits or runs now is cancelled. Source files stay; each can be retried."),
    }, "queue/clear");
}

const ofPlace = (place) => (place === null ? "" : "?destination=" + encodeURIComponent(place));

/** place: a destination's name, or null for all of them. */
export const resume = (place) => attempt(() => post("resume" + ofPlace(place)));

export function pause(place) {
    return attemptAfter({
        title: `Pause ${place ?? "all destinations"}?`, yes: "Pause",
        body: h("p", {}, "What is being sent now ends; nothing new is begun until you resume, over restarts too. "
            + "Files are still taken in."),
    }, "pause" + ofPlace(place));
}

export async function setLimit(place, standing) {
    const control = h("input", {
        id: "limit", name: "limit", required: true, autofocus: true, autocomplete: "off", list: "limits",
        placeholder: "5MiB/s, off, 0 or auto", "aria-describedby": "limit-note",
    });
    const answer = await confirm({
        title: `Limit of ${place ?? "all destinations together"}`, yes: "Set the limit",
        fields: [
            h("label", { for: "limit" }, "Most per second"), control,
            h("datalist", { id: "limits" }, LIMITS.map((value) => h("option", { value }))),
            h("p", { id: "limit-note", class: "muted" },
                "off is no limit, 0 sends nothing, auto is as configured. It holds until auto or the next start."),
        ],
        body: standing ? h("p", {}, `Now: ${standing}`) : null,
    });
    return answer && attempt(() => post("limits", { limit: answer.limit.trim(), destination: place }));
}

export function resumeRoot(root) {
    return attemptAfter({
        title: "Take this folder as it is now?", yes: "Resume",
        body: [
            h("p", {}, name(root.path)), h("p", {}, root.state),
            muted("Resume only when the folder is right as it is, for example after a disk was mounted again."),
        ],
    }, "roots/resume", { text: root.path });
}
