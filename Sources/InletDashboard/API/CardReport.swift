package import InletAgent
internal import InletCore
package import InletJournal

/// A line of the list below a card's verdict.
package struct CardLineReport: Codable, Sendable, NamedSchema {
    /// good, waiting, bad or note.
    package var mark: String
    package var text: String

    static var schemaName: String { "CardLine" }
    static let notes: [String: SchemaDescription] = ["mark": .schema(.word(["good", "waiting", "bad", "note"]))]

    init(_ line: CardLine) { (mark, text) = (line.mark.rawValue, DisplayText.escape(line.text)) }
}

/// A card's stay in a reader, with its last verdict.
package struct CardStayReport: Codable, Sendable, NamedSchema {
    package var stay: Int64
    /// Of its own for ever: `UNTITLED (2)`.
    package var name: String
    package var uuid: String?
    package var mount: String
    package var inserted_at: String
    package var removed_at: String?
    package var roll: String?
    package var camera: String?
    package var `operator`: String?
    package var note: String?
    package var verdict: String?
    package var headline: String?
    package var verdict_at: String?
    package var lines: [CardLineReport]
    package var files: Int
    package var bytes: Int64
    /// Over its whole life.
    package var read_errors: Int
    package var last_read_error_at: String?
    package var slow_reads: Int

    static var schemaName: String { "CardStay" }
    static let notes: [String: SchemaDescription] = [
        "stay": "Its number.", "name": "Its own for ever.", "inserted_at": .time, "removed_at": .time,
        "verdict_at": .time, "last_read_error_at": .time, "verdict": .schema(CardReport.verdicts),
        "read_errors": "Over its whole life.", "slow_reads": "Over its whole life.",
    ]

    package init(_ row: InsertionRow) {
        stay = row.id
        (name, uuid, mount) = (DisplayText.escape(row.card.name), row.card.uuid, row.mount.display)
        (inserted_at, removed_at) = (row.insertedAt.rfc3339Seconds, row.removedAt?.rfc3339Seconds)
        (roll, camera) = (row.labels.roll, row.labels.camera)
        (self.operator, note) = (row.labels.operator, row.labels.note)
        (verdict, headline, verdict_at) = (
            row.verdict, row.headline.map { DisplayText.escape($0) }, row.verdictAt?.rfc3339Seconds
        )
        lines = row.lines.map { CardLineReport($0) }
        (files, bytes) = (row.files, row.bytes)
        (read_errors, slow_reads) = (row.card.errors.reads, row.card.errors.slow)
        last_read_error_at = row.card.errors.lastRead?.rfc3339Seconds
    }
}

/// A card in a reader, and whether it may be taken out.
package struct CardReport: Codable, Sendable, NamedSchema {
    /// A card's files at one destination.
    package struct Place: Codable, Sendable, NamedSchema {
        package var name: String
        package var required: Bool
        package var files: Int
        package var proved: Int
        package var sized: Int
        package var missing: Int
        package var silent: Int
        package var unconfirmed: Int
        package var open: Int
        package var failed: Int
        package var asked_at: String?
        package var reason: String?

        static var schemaName: String { "CardPlace" }
        static let notes: [String: SchemaDescription] = [
            "files": "Files that belong there.", "proved": "There now, with proved bytes.",
            "sized": "There now, with equal sizes only.", "missing": "No longer there.",
            "silent": "Nobody can be asked about them now.",
            "unconfirmed": "It cannot tell about them until a person acts.",
            "open": "On their way.", "asked_at": .time,
        ]

        init(_ place: CardPlace) {
            (name, required, files) = (place.name, place.isRequired, place.files)
            (proved, sized, missing) = (place.proved, place.sized, place.missing)
            (silent, unconfirmed) = (place.silent, place.unconfirmed)
            (open, failed, asked_at) = (place.open, place.failed, place.askedAt?.rfc3339Seconds)
            reason = place.reason.map { DisplayText.escape($0) }
        }
    }

    /// Files on a card that Inlet did not take.
    package struct Others: Codable, Sendable, NamedSchema {
        package var reason: String
        package var files: Int
        package var bytes: Int64
        package var folders: [String]

        static var schemaName: String { "CardOthers" }
        static let notes: [String: SchemaDescription] = [
            "reason": .schema(.word(OtherFiles.Reason.allCases.map(\.rawValue))), "folders": "Some of their folders.",
        ]

        init(_ others: OtherFiles) {
            (reason, files, bytes) = (others.reason.rawValue, others.files, others.bytes)
            folders = others.folders.map { DisplayText.escape($0) }
        }
    }

    package var name: String
    package var label: String?
    package var uuid: String?
    /// The camera's system, by the names of the card's folders.
    package var system: String?
    package var mount: String
    package var stay: Int64
    package var inserted_at: String
    package var roll: String?
    package var camera: String?
    package var `operator`: String?
    package var note: String?
    /// Whether to ask a person for its roll.
    package var ask: Bool
    package var verdict: String
    package var headline: String
    /// Whether it may be taken out: only this is green.
    package var safe: Bool
    /// Whether it stays so until a person does something.
    package var needs_somebody: Bool
    package var stage: String
    package var decided_at: String?
    package var lines: [CardLineReport]
    package var files: Int
    package var bytes: Int64
    package var accounted: Int
    package var open: Int
    package var open_bytes: Int64
    package var seconds_left: Int64?
    package var others: [Others]
    package var others_may_stay: Bool
    package var destinations: [Place]
    package var copies: Int?
    /// Whether routes may move and delete files on it (`volume_writes`).
    package var writes: Bool
    package var read_errors: Int
    package var last_read_error_at: String?
    package var slow_reads: Int

    static var schemaName: String { "Card" }
    static let verdicts = Schema.word([
        "safe", "not_yet", "call_somebody", "unverified", "others_left", "empty", "unknown", "pulled", "out",
    ])
    static let notes: [String: SchemaDescription] = [
        "name": "Its own for ever.", "system": "The camera's system, by the names of the card's folders.",
        "stay": "The number of its stay in the reader.", "inserted_at": .time, "decided_at": .time,
        "ask": "Whether to ask a person for its roll.", "verdict": .schema(verdicts),
        "safe": "Whether it may be taken out.", "needs_somebody": "Whether it stays so until a person does something.",
        "stage": .schema(.word(["listing", "copying", "asking", "checking", "known"])),
        "accounted": "Files that enough destinations have now.", "open": "Files that wait or are on their way.",
        "seconds_left": "At the present pace.", "copies": "How many disks must have each file.",
        "writes": "Whether routes may move and delete files on it.", "last_read_error_at": .time,
        "read_errors": "Over its whole life.", "slow_reads": "Over its whole life.",
    ]

    package init(_ status: CardStatus) {
        let (row, facts) = (status.insertion, status.facts)
        (name, label, uuid) = (
            DisplayText.escape(row.card.name), row.card.label.map { DisplayText.escape($0) }, row.card.uuid
        )
        (system, mount, stay) = (facts.camera, status.mount.display, row.id)
        inserted_at = row.insertedAt.rfc3339Seconds
        (roll, camera) = (row.labels.roll, row.labels.camera)
        (self.operator, note) = (row.labels.operator, row.labels.note)
        ask = row.labels == CardLabels() && status.settings.map { $0.ask != .never } ?? false
        (verdict, headline) = (status.verdict.word, DisplayText.escape(status.verdict.headline))
        (safe, needs_somebody) = (status.verdict.isSafe, status.verdict.needsSomebody)
        (stage, decided_at) = (facts.stage.rawValue, status.decidedAt?.rfc3339Seconds)
        lines = status.lines.map { CardLineReport($0) }
        (files, bytes, accounted) = (facts.files, facts.bytes, facts.accounted)
        (open, open_bytes, seconds_left) = (facts.open, facts.openBytes, status.left?.components.seconds)
        (others, others_may_stay) = (facts.others.map { Others($0) }, facts.othersMayStay)
        (destinations, copies) = (facts.places.map { Place($0) }, facts.copies)
        writes = status.settings?.volumeWrites ?? false
        (read_errors, slow_reads) = (row.card.errors.reads, row.card.errors.slow)
        last_read_error_at = row.card.errors.lastRead?.rfc3339Seconds
    }
}

/// The readers, and what comes next.
package struct CardsReport: Codable, Sendable, NamedSchema {
    package var cards: [CardReport]
    /// The roll after the one that was named last.
    package var next_roll: String?
    /// Rolls that are missing among the last ones.
    package var missing_rolls: [String]
    /// The watched folders that are patterns: only these find cards.
    package var patterns: [String]
    package var at: String

    static var schemaName: String { "Cards" }
    static let notes: [String: SchemaDescription] = [
        "next_roll": "The roll after the one that was named last.",
        "missing_rolls": "Rolls that are missing among the last ones.",
        "patterns": "The watched folders that are patterns: only these find cards.", "at": .time,
    ]
}

/// Labels of a card, by a person. A text that is left out stays; an empty one is removed.
package struct CardLabelOrder: Codable, Sendable, NamedSchema {
    package var roll: String?
    package var camera: String?
    package var `operator`: String?
    package var note: String?

    static let notes: [String: SchemaDescription] = [:]

    package init(roll: String?, camera: String?, operator: String?, note: String?) {
        (self.roll, self.camera, self.operator, self.note) = (roll, camera, `operator`, note)
    }

    func labels(over known: CardLabels) -> CardLabels {
        CardLabels(
            roll: roll ?? known.roll, camera: camera ?? known.camera, operator: self.operator ?? known.operator,
            note: note ?? known.note)
    }
}
