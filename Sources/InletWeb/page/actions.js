import { post } from "./api.js";
import { h, toast } from "./dom.js";
import { live } from "./live.js";
import { confirm, name } from "./parts.js";
import { bytes, count } from "./text.js";

const WORDS = {
    retry: ["Retry", "Sends again what failed, expired or was cancelled; what waits is tried now."],
    cancel: ["Cancel", "Stops what is queued or being sent. The source files stay where they are."],
    forget: ["Forget", "Takes ended files out of the journal, with their receipts. A file that is still there counts as new."],
};

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

export async function onJob(action, job) {
    const [verb, meaning] = WORDS[action];
    const sure = await confirm({
        title: `${verb} job ${job.job}?`, yes: verb, tone: action === "retry" ? null : "bad",
        body: [h("p", {}, name(job.path)), h("p", { class: "muted" }, meaning)],
    });
    return sure && attempt(() => post(`jobs/${job.job}/${action}`));
}

/** Asks the agent what a selection is, shows that, and only then does it. */
export async function onSelection(action, selection) {
    const [verb, meaning] = WORDS[action];
    const wish = { states: [], labels: {}, ...selection };
    const plan = await attempt(() => post(`queue/${action}?dry_run=1`, wish));
    if (!plan) return null;
    const more = plan.matched - plan.files.length;
    const sure = await confirm({
        title: `${verb} ${count(plan.matched, "file")}, ${bytes(plan.bytes)}?`,
        yes: plan.matched ? verb : null, tone: action === "retry" ? null : "bad",
        body: [
            h("p", { class: "muted" }, meaning),
            h("ul", { class: "files" }, plan.files.map((file) =>
                h("li", {}, name(file.path), h("span", { class: "small" }, ` ${bytes(file.size)}, ${file.state}`)))),
            more > 0 ? h("p", {}, `and ${count(more, "more", "more")}`) : null,
        ],
    });
    if (!sure) return null;
    const report = await attempt(() => post(`queue/${action}`, wish));
    if (report) toast(told(verb, report), report.done ? "good" : "bad");
    return report;
}

function told(verb, report) {
    const skipped = Object.entries(report.skipped || {}).map(([why, files]) => `${count(files, "file")} ${why}`);
    const waits = (report.waits_for || []).map((why) => `; ${why}`).join("");
    return `${verb}: ${count(report.done, "file")} done` + (skipped.length ? `; skipped: ${skipped.join(", ")}` : "") + waits;
}

export async function clearQueue() {
    const { total } = live.status.queue;
    const sure = await confirm({
        title: `Clear the queue: cancel ${count(total, "delivery", "deliveries")}?`, yes: "Clear the queue", tone: "bad",
        body: h("p", {}, "Everything that waits or runs now is cancelled. Source files stay; each can be retried."),
    });
    return sure && attempt(() => post("queue/clear"));
}

/** place: a destination's name, or null for all of them. */
export async function pause(place, paused) {
    const query = place === null ? "" : "?destination=" + encodeURIComponent(place);
    const who = place ?? "all destinations";
    if (!paused) return attempt(() => post("resume" + query));
    const sure = await confirm({
        title: `Pause ${who}?`, yes: "Pause",
        body: h("p", {}, "What is being sent now ends; nothing new is begun until you resume, over restarts too. "
            + "Files are still taken in."),
    });
    return sure && attempt(() => post("pause" + query));
}

export async function setLimit(place, standing) {
    const fields = [
        h("label", { for: "limit" }, "Most per second"),
        h("input", {
            id: "limit", name: "limit", required: true, autofocus: true, autocomplete: "off", list: "limits",
            placeholder: "5MiB/s, off, 0 or auto", "aria-describedby": "limit-note",
        }),
        h("datalist", { id: "limits" }, ["auto", "off", "0", "1MiB/s", "5MiB/s", "20MiB/s"].map((value) => h("option", { value }))),
        h("p", { id: "limit-note", class: "muted" },
            "off is no limit, 0 sends nothing, auto is as configured. It holds until auto or the next start."),
    ];
    const answer = await confirm({
        title: `Limit of ${place ?? "all destinations together"}`, yes: "Set the limit", fields,
        body: standing ? h("p", {}, `Now: ${standing}`) : null,
    });
    return answer && attempt(() => post("limits", { limit: answer.limit.trim(), destination: place }));
}

export async function resumeRoot(root) {
    const sure = await confirm({
        title: "Take this folder as it is now?", yes: "Resume",
        body: [
            h("p", {}, name(root.path)), h("p", {}, root.state),
            h("p", { class: "muted" },
                "Resume only when the folder is right as it is, for example after a disk was mounted again."),
        ],
    });
    return sure && attempt(() => post("roots/resume", { text: root.path }));
}
