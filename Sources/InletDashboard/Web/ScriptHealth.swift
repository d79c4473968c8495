extension WebFiles {
    /// What needs a person, worst first.
    static let scriptHealth = #"""
        import { count } from "./text.js";

        /** Findings of a status: `tone` bad, waiting or neutral; `text`; where to look. */
        export function findings(status) {
            const found = [];
            const add = (tone, text, href, link) => found.push({ tone, text, href, link });
            if (!status.running) add("bad", "The agent is not running: nothing is taken in or sent.");
            if (status.journal_failing) {
                add("bad", "The journal cannot be written: nothing new is taken in until it can.", "#/log?level=error", "Log");
            }
            for (const root of status.roots || []) rootFinding(root, add);
            for (const place of status.destinations || []) placeFinding(place, add);
            const { failed, expired, parked } = status.queue;
            if (failed) add("bad", `${count(failed, "file")} failed.`, "#/files?state=failed", "Look at them");
            if (expired) add("bad", `${count(expired, "file")} expired.`, "#/files?state=expired", "Look at them");
            const { rejected } = status.files;
            if (rejected) add("bad", `${count(rejected, "file")} rejected.`, "#/files?state=rejected", "Look at them");
            if (status.dashboard?.state === "failing") add("waiting", "This page cannot be served at its configured address.", "#/log", "Log");
            if (parked) {
                add("waiting", `${count(parked, "delivery", "deliveries")} to a destination that is not configured.`);
            }
            for (const limit of status.limits || []) {
                if (limit.bytes_per_second !== 0) continue;
                const where = limit.destination ? `to ${limit.destination}` : "to any destination";
                add("waiting", `Nothing is sent ${where}: the limit is 0.`, "#/destinations", "Limits");
            }
            if (status.notices_failed) add("bad", `${count(status.notices_failed, "notice")} could not be delivered.`);
            const order = ["bad", "waiting", "neutral"];
            return found.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone));
        }

        function rootFinding(root, add) {
            const [state, ...why] = root.state.split(": ");
            const reason = why.join(": ");
            if (state === "paused") add("bad", `${root.path} is paused: ${reason}`, "#/roots", "Look at it");
            if (state === "failing") add("bad", `${root.path} cannot be watched: ${reason}`, "#/roots", "Look at it");
            if (state === "missing") add("waiting", `${root.path} is not there; it is taken when it appears.`, "#/roots", "Look at it");
        }

        function placeFinding(place, add) {
            const why = place.last_error ? `: ${place.last_error}` : "";
            const waiting = place.waiting ? ` ${count(place.waiting, "file")} wait${place.waiting === 1 ? "s" : ""}.` : "";
            if (place.state === "down") add("bad", `${place.name} is down${why}.${waiting}`, "#/destinations", "Details");
            if (place.state === "credentials refused") {
                add("bad", `${place.name} refuses the credentials${why}.${waiting}`, "#/destinations", "Details");
            }
            if (place.state === "paused") add("waiting", `${place.name} is paused.${waiting}`, "#/destinations", "Resume it");
            if (place.state === "asks for time") {
                add("neutral", `${place.name} asks for time${why}.`, "#/destinations", "Details");
            }
        }

        /** One sentence: is it healthy. */
        export function sentence(status) {
            const found = findings(status);
            const bad = found.filter((finding) => finding.tone === "bad").length;
            const notes = found.length - bad;
            if (bad) return { tone: "bad", text: `${count(bad, "thing")} ${bad === 1 ? "needs" : "need"} you` };
            const waiting = status.queue.waiting + status.queue.held;
            const work = status.queue.in_flight
                ? `${count(status.queue.in_flight, "delivery", "deliveries")} moving`
                : waiting ? `${count(waiting, "delivery", "deliveries")} waiting` : "nothing to do";
            // What the agent counts and this page does not know is no good news either.
            if (!notes && status.health && status.health.state !== "ok") return { tone: "waiting", text: status.health.sentence };
            if (notes) return { tone: "waiting", text: `Working, with ${count(notes, "note")}: ${work}` };
            return { tone: "good", text: `All is well: ${work}` };
        }

        /** How the sum that must hold is made up: everything seen ends somewhere. */
        export function balance(status) {
            const terms = Object.entries({ ...status.files, ignored: status.ignored }).filter(([, files]) => files > 0);
            const sum = terms.reduce((total, [, files]) => total + files, 0);
            return { terms, sum, holds: sum === status.seen };
        }

        """#
}
