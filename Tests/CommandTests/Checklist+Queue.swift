extension Checklist {
    /// S1: an upload queue that survives crashes.
    static let queue = records + resuming + bounds + reports + background + upkeep

    private static let records = [
        Row(
            "S1.01",
            .superseded(
                by: [
                    "what was admitted is there",
                    "a crash at any point leaves one object, one receipt, and the source as its route asks",
                ],
                why:
                    "The record is durable before the first byte goes out, and the watched file itself is the stored copy: no second one is made."
            )),
        Row(
            "S1.02",
            .shown(
                by: [
                    "what is admitted is what is read back", "a claim counts its attempt and hands out the checkpoint",
                    "queue list and show tell each file's story, as text and as JSON",
                    "labels of a sidecar go over the route's, into log, listing and receipt",
                    "what a folder's marker says labels all its files, over its own file and the route",
                ])),
        Row(
            "S1.03",
            .superseded(
                by: [
                    "the first route that matches decides", "a plan holds all that admission needs",
                    "labels of a sidecar go over the route's, into log, listing and receipt",
                ],
                why: "Routes and their categories take the place of four fixed types, and a category may be any word.")),
        Row(
            "S1.04",
            .shown(
                by: [
                    "what is admitted is what is read back", "text for a destination keeps spaces and slashes",
                    "labels of a unit go over its route's and under those of a sidecar",
                    "what a folder's marker says labels all its files, over its own file and the route",
                ])),
        Row(
            "S1.05",
            .shown(by: [
                "a file waits for its sidecars, and all travel together",
                "after its wait a file goes without what is missing, and a late companion follows it",
            ])),
        Row(
            "S1.06",
            .superseded(
                by: [
                    "a delivered file is kept where the route says so",
                    "a delivered file is deleted where the route says so", "a file is finished once, with one receipt",
                ],
                why:
                    "Success leaves a receipt instead of nothing, and the source is kept, archived or deleted as its route says."
            )),
    ]

    private static let resuming = [
        Row(
            "S1.07",
            .shown(by: [
                "passing trouble is tried again, always under the same key",
                "a claim counts its attempt and hands out the checkpoint",
            ])),
        Row(
            "S1.08",
            .shown(by: [
                "fifteen kills at random moments lose nothing and send nothing twice",
                "the next attempt sends only what is not proved", "a claim comes back uncounted, with its checkpoint",
                "killed after the proof, nothing is sent again to a store with part URLs",
            ])),
        Row(
            "S1.09",
            .shown(by: [
                "a retried file is delivered, and a delivered one has nothing to retry",
                "a pause holds deliveries, survives a restart, and ends with resume",
                "resume asks a destination that is down at once",
            ])),
        Row(
            "S1.10",
            .shown(by: [
                "refused credentials pause the destination and cost no attempt",
                "refused credentials wait for a probe a minute or for new ones",
                "what waits for a destination that refuses our credentials goes untried until it takes new ones",
                "what waits goes untried while its key is refused at the start, and goes with a new key",
            ])),
        Row(
            "S1.11",
            .superseded(
                by: [
                    "a file fails when its attempts are used up",
                    "a failed file stays where its route does not ask for quarantine",
                    "a failed file is quarantined beside the reason",
                ],
                why:
                    "A file whose attempts are used up is marked failed, with the reason, and can be retried; it is never dropped from the queue or deleted."
            )),
        Row(
            "S1.12",
            .superseded(
                by: [
                    "what waits expires by its destination's uptime, what runs does not",
                    "a long queue is warned of once, and what waits too long expires with its source untouched",
                ],
                why:
                    "The clock runs only while the destination is up, and what expires is parked and shown; its source is not purged."
            )),
    ]

    private static let bounds = [
        Row(
            "S1.13",
            .superseded(
                by: [
                    "what was admitted is there", "clearing cancels every pending file", "memory is bounded",
                    "a full queue leaves files in their folder, and all are delivered in the end",
                ],
                why:
                    "The queue is on disk; a limit of items is off unless it is asked for, and then keeps files in their folders."
            )),
        Row(
            "S1.14",
            .superseded(
                by: [
                    "a refusal says why to a person", "a dropped file arrives byte for byte and the agent ends with 0",
                ],
                why: "A file over its route's limit is rejected with the reason; nothing is compressed to make it fit.")
        ),
        Row(
            "S1.15",
            .superseded(
                by: [
                    "a full disk is told as such, and the journal goes on when space returns",
                    "a proof waits for space and is not lost", "min_free is kept, but for what is there already",
                ],
                why:
                    "When the disk is full, admission stops and says so; nothing that was accepted is evicted to make room."
            )),
        Row(
            "S1.16",
            .superseded(
                by: [
                    "a file that is no journal is set aside as it is",
                    "a journal with a damaged first page is set aside as it is",
                    "a file that vanishes before its turn ends as gone",
                ],
                why:
                    "Damaged data is set aside and named, and a missing source ends as gone with a receipt; nothing is dropped silently."
            )),
        Row(
            "S1.17",
            .shown(by: [
                "a quiet folder is delivered as one", "nothing of an open unit is sent, everything of a closed one",
            ])),
        Row(
            "S1.18",
            .shown(by: [
                "a batch ends with its last file, in the worst state, once",
                "a file that is sent again opens the end of its batch again",
                "a folder ends as partial with its counts, and as complete once the rest was sent again",
                "a batch is complete, partial or failed",
            ])),
    ]

    private static let reports = [
        Row(
            "S1.19",
            .shown(by: [
                "every open delivery is counted once, where it is",
                "status has the files and bytes of each state, and all of them as seen",
                "status counts what waits, once, and how long the oldest has waited",
                "status tells what expired, and that it waits no more",
            ])),
        Row(
            "S1.20",
            .shown(by: [
                "status tells what waits and was tried, and after a start how much of it has gone",
                "queue list and show tell each file's story, as text and as JSON",
                "a start frees claims uncounted, and delays those that are interrupted again and again",
            ])),
        Row(
            "S1.21",
            .shown(by: [
                "an upload that a kill cut off is told as resumed, a new one is not, and both tell their address",
                "what an earlier process began is told as resumed, at its first attempt only",
                "every log line is a JSON object with time, level, event and the fields of its event",
                "receipts are JSON lines, newest first, one for each finished file",
                "a delivered file is told once, with its receipt",
                "a notice that was not taken outlives a kill, and comes with the same number",
                "a receipt tells times, attempts, labels and what kind of file it was",
                "a crash around the file of a receipt leaves one receipt",
                "verify says what is missing and what is different, and changes nothing",
            ])),
        Row(
            "S1.22",
            .shown(by: [
                "a start with work asks once before anything goes, and tells in the end what was resumed",
                "status tells what waits and was tried, and after a start how much of it has gone",
            ])),
        Row(
            "S1.23",
            .shown(by: [
                "status tells what waits and was tried, and after a start how much of it has gone",
                "a pause holds deliveries, survives a restart, and ends with resume",
                // The banner itself is seen in packaging/browser, after a kill.
                "the page is told how far what waited at the start has gone, and in the end what came of it",
            ])),
        Row(
            "S1.24",
            .superseded(
                by: [
                    "what waits is cancelled by number, or all of it by clear",
                    "each filter and each switch means the same to each command",
                    "clear cancels what waits, and what is ended can be forgotten",
                    "a file that is no journal is set aside as it is",
                    "a reset keeps the journal and begins an empty one, and not while the agent runs",
                ],
                why:
                    "Clearing cancels what waits and leaves the sources; a reset begins an empty journal and keeps the old one. The whole state is one folder instead of a folder and a preference key."
            )),
        Row(
            "S1.25",
            .shown(by: [
                "queue list and show tell each file's story, as text and as JSON",
                "status shows how far each transfer is, in bytes and percent",
            ])),
        Row(
            "S1.26",
            .shown(by: [
                "twenty that wait are no long queue, one more is warned of once, and twenty are calm again",
                "a long queue is warned of once, and what waits too long expires with its source untouched",
                "defaults of the tables equal those of the settings",
            ])),
    ]
}
