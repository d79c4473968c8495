// The states and levels of the API: their meaning and their look.

/** The look of a state: good, moving, waiting, bad or neutral. */
export const TONES = {
    delivered: "good", duplicate: "good", up: "good", watching: "good",
    pending: "waiting", ready: "waiting", open: "waiting", parked: "waiting", paused: "waiting",
    claimed: "moving", starting: "moving", "not asked yet": "neutral", "asks for time": "waiting",
    failed: "bad", rejected: "bad", expired: "bad", down: "bad", "credentials refused": "bad",
    failing: "bad", missing: "bad", "not running": "bad",
};

/** The meaning of a file's state. */
export const MEANS = {
    pending: "queued, being sent, or waiting for its time",
    delivered: "every destination proved that it has the bytes",
    duplicate: "not sent: its destination already has this content",
    rejected: "did not pass the rules of its route",
    failed: "Inlet gave up; retry sends the file again",
    expired: "not delivered within the time limit of its route",
    cancelled: "cancelled by a person",
    gone: "disappeared before Inlet sent it",
    superseded: "changed before it was delivered; its new version is a file of its own",
};

export const STATES = Object.keys(MEANS);
/** The levels of log lines, the least important first. */
export const LEVELS = ["debug", "info", "warning", "error"];
