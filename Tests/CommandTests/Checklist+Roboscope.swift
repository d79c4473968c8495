extension Checklist {
    /// S2: spaces with their models, work sessions and markers at Roboscope.
    static let roboscope = client + spaces + sessions + markers + together

    private static let spaceCommands = "spaces are made, shown, changed and deleted"
    private static let registered = "a model that is dropped is stored, and its space shows it"
    private static let sessionCommands = "a work session goes from active to done, whoever else writes to it"
    private static let markerCommands = "markers have four corners and a colour, and keep what others put into them"
    private static let statuses = "every status has one meaning"
    private static let down = "a token that is refused is 69, and so is a server that is down"
    private static let seen = "who writes is seen, and has the lock until it is done"
    private static let keptWhole = "every value comes back from its text, in both forms"

    private static let client = [
        Row("S2.01", .shown(by: ["a destination needs an address and a storage", registered])),
        Row("S2.02", .shown(by: ["no answer at all is a stall", "a dripping answer ends at its deadline"])),
        Row("S2.03", .shown(by: [spaceCommands, "a list is bare or in an object, and nothing else", keptWhole])),
        Row("S2.04", .shown(by: [statuses, down, "a server that speaks nonsense makes nothing fail for good"])),
    ]

    private static let spaces = [
        Row("S2.05", .shown(by: [spaceCommands])),
        Row("S2.06", .shown(by: [spaceCommands])),
        Row("S2.07", .shown(by: [spaceCommands, registered])),
        Row("S2.08", .shown(by: [spaceCommands, "URLs that are about to go are known"])),
        Row("S2.09", .shown(by: [spaceCommands])),
        Row(
            "S2.10",
            .shown(by: [registered, "a model and its picture go in one PATCH, and only what differs is written"])),
    ]

    private static let sessions = [
        Row("S2.11", .shown(by: [sessionCommands])),
        Row("S2.12", .shown(by: [sessionCommands])),
        Row("S2.13", .shown(by: [sessionCommands])),
        Row("S2.14", .shown(by: [sessionCommands])),
        Row("S2.15", .shown(by: [sessionCommands])),
        Row("S2.16", .shown(by: [sessionCommands, "a session file sets type, status and meta"])),
        Row("S2.17", .shown(by: [sessionCommands, "a session file sets type, status and meta"])),
        Row("S2.18", .shown(by: [sessionCommands, "the files of a unit make one session, and its end makes it done"])),
    ]

    private static let markers = [
        Row("S2.19", .shown(by: [markerCommands])),
        Row("S2.20", .shown(by: [markerCommands])),
        Row("S2.21", .shown(by: [markerCommands, "what servers cannot take is refused before it is sent"])),
        Row(
            "S2.22",
            .shown(by: [
                "ten thousand markers arrive once each, with the connection cut five times",
                "an import that is killed five times brings each marker once, and ends its folder's session once",
                "a server without the bulk call gets markers one by one",
            ])),
        Row("S2.23", .shown(by: [markerCommands])),
        Row("S2.24", .shown(by: [markerCommands])),
        Row(
            "S2.25",
            .shown(by: [
                sessionCommands, "someone else's change is read and ours made on top of it, three times at most",
            ])),
        Row("S2.26", .shown(by: [spaceCommands, markerCommands, keptWhole])),
    ]

    private static let together = [
        Row("S2.27", .shown(by: [seen, "a server without presence and locks is written to, and asked once"])),
        Row(
            "S2.28",
            .shown(by: [
                seen, "a session that somebody has locked is waited for without a worker, and not for ever",
            ])),
        Row("S2.29", .shown(by: ["the trail of what was done is listed, where the server keeps one"])),
        Row(
            "S2.30",
            .superseded(
                by: [seen],
                why:
                    "No server ever had the announced channel: presence is a heartbeat over HTTP, and lists are read when they are asked for."
            )),
        Row(
            "S2.31",
            .superseded(
                by: [spaceCommands, down],
                why: "A list is read anew each time it is asked for, and a failure is a sentence and an exit code.")),
        Row(
            "S2.32",
            .shown(by: [
                down, "a check with an unreachable destination is 69, with a missing folder 1, and 0 when all is fine",
            ])),
    ]
}
