extension Checklist {
    /// S1: what a phone does in the background, a service does all the time.
    static let background = [
        Row(
            "S1.27",
            .superseded(
                by: [
                    "files up to 5 MiB go in one request, larger ones in parts",
                    "big files have a worker each, and no more", "small files share the destination's connections",
                ],
                why:
                    "A service has no time limit to fit into, so the class of a file follows from its size and not from a guess at its duration."
            )),
        Row(
            "S1.28",
            .superseded(
                by: [
                    "SIGTERM lets a running part end, and the next start sends only the rest",
                    "a waiting delivery gives its worker back and costs no attempt",
                ], why: "Nothing is too long for a service; whatever a shutdown interrupts goes on at the next start.")),
        Row(
            "S1.29",
            .superseded(
                by: [
                    "a send that was killed goes on where it stopped",
                    "fifteen kills at random moments lose nothing and send nothing twice",
                    "a state directory belongs to one process at a time",
                ],
                why:
                    "No system session takes the transfer over: the upload's id is in the journal, and the next process goes on with it."
            )),
        Row(
            "S1.30",
            .superseded(
                by: ["everything is there after reopening", "a journal of a newer version is set aside as it is"],
                why:
                    "One SQLite journal with versioned migrations takes the place of copied files and an index in the preferences."
            )),
        Row(
            "S1.31",
            .superseded(
                by: [
                    "a delivered file is deleted where the route says so",
                    "a long queue is warned of once, and what waits too long expires with its source untouched",
                    "min_free is kept, but for what is there already",
                ], why: "Nothing is copied for the queue, so it needs no space to be freed, and expiry deletes no file."
            )),
        Row(
            "S1.32",
            .shown(
                by: [
                    "an outage pauses the destination, costs no attempt, and a probe brings it back",
                    "an outage pauses at once and is probed after five seconds, then once a minute",
                    "limits hold before anything is sent, and change at the edges of the timetable",
                    "a running agent is told a limit, says what holds and why, and goes back to its configuration",
                ])),
    ]

    /// S1: looking after the queue.
    static let upkeep = [
        Row(
            "S1.33",
            .shown(by: [
                "every event has its own stable name",
                "every log line is a JSON object with time, level, event and the fields of its event",
            ])),
        Row(
            "S1.34",
            .shown(by: [
                "a crash at any point leaves one object, one receipt, and the source as its route asks",
                "fifteen kills at random moments lose nothing and send nothing twice",
            ])),
        Row(
            "S1.35",
            .shown(by: [
                "a check with a wrong key says so and is 69",
                "queue list and show tell each file's story, as text and as JSON",
                "a check with an unreachable destination is 69, with a missing folder 1, and 0 when all is fine",
            ])),
        Row(
            "S1.36",
            .shown(by: [
                "a file that is there at the start is delivered",
                "existing: skip leaves old files alone, also after a restart, and takes new ones",
                "status has the files and bytes of each state, and all of them as seen",
                "what an earlier process left is in the metrics from the start, and what has become of it",
            ])),
    ]
}
