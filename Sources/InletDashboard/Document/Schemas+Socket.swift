internal import InletCore
internal import InletJournal

/// What only goes through the control socket.

extension FollowReport: Described {
    static var schemaName: String { "Follow" }
    static var schema: Schema {
        .object([
            .must("ends", .list(.named(End.self))), .may("next", .named(File.self)),
            .must("moving", .list(.named(StatusReport.Transfer.self))),
        ])
    }
}

extension FollowReport.End: Described {
    static var schemaName: String { "FollowEnd" }
    static var schema: Schema {
        .object([.must("job", .integer), .may("report", .named(FollowReport.File.self)), .may("waits_for", .text)])
    }
}

extension FollowReport.File: Described {
    static var schemaName: String { "FollowFile" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("path", .text), .must("size", .integer), .must("state", .text),
            .may("reason", .text),
            .must(
                "places",
                .list(
                    .object([
                        .must("destination", .text), .must("state", .text), .may("key", .text), .may("url", .text),
                    ]))),
        ])
    }
}

extension TokenReport: Described {
    static var schemaName: String { "Token" }
    static var schema: Schema { .object([.may("token", .text), .must("message", .text)]) }
}

extension TokenWish: Described {
    static var schemaName: String { "TokenWish" }
    static var schema: Schema { .object([.must("refused", .text)]) }
}

extension ProofWish: Described {
    static var schemaName: String { "ProofWish" }
    static var schema: Schema {
        .object([
            .must("jobs", .list(.integer)), .may("since", .integer), .may("destination", .text),
            .may("batch", .integer), .must("after", .integer),
        ])
    }
}

extension ProofPage: Described {
    static var schemaName: String { "ProofPage" }
    static var schema: Schema { .object([.must("proofs", .list(.named(ProofReport.self))), .may("next", .integer)]) }
}

extension ProofReport: Described {
    static var schemaName: String { "Proof" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("delivery", .integer), .must("path", .text), .must("destination", .text),
            .may("proof", .object([], more: .anything)), .must("digests", .list(.object([], more: .anything))),
        ])
    }
}

extension ContentReport: Described {
    static var schemaName: String { "Content" }
    static var schema: Schema {
        .object([.must("destination", .text), .must("job", .integer), .must("path", .text), .must("key", .text)])
    }
}

extension ContentQuestion: Described {
    static var schemaName: String { "ContentQuestion" }
    static var schema: Schema {
        .object([
            .must("digest", .object([], more: .anything)), .must("size", .integer), .must("route", .text),
            .must("fields", .map(.text)), .must("destinations", .list(.text)),
        ])
    }
}

extension SendOrder: Described {
    static var schemaName: String { "SendOrder" }
    static var schema: Schema {
        .object([
            .must("paths", .list(.text), "Base64, because names need not be text."), .may("to", .text),
            .may("again", .flag, "Also what was delivered there before."),
        ])
    }
}

extension BackupOrder: Described {
    static var schemaName: String { "BackupOrder" }
    static var schema: Schema { .object([.may("path", .list(.integer), "The path's bytes.")]) }
}

extension RootOrder: Described {
    static var schemaName: String { "RootOrder" }
    static var schema: Schema {
        .object([.may("path", .list(.integer), "The path's bytes."), .may("text", .text, "Or the path as text.")])
    }
}
