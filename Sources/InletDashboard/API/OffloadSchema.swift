package import InletAgent

extension BatchReport: NamedSchema {
    static let notes: [String: SchemaDescription] = [
        "created_at": .time, "closed_at": .time, "ended_at": .time, "files": "Files by state.",
    ]
}

extension OffloadReport: NamedSchema {
    static let notes: [String: SchemaDescription] = [
        "printed_at": .time, "cards": "Left out for a batch.", "batch": "Left out for cards.",
        "missing": "Numbers that are missing from the batch's runs of recordings.",
        "unread": "Recordings that could not be looked into.",
    ]
}

extension OffloadReport.Delivery: NamedSchema {
    static var schemaName: String { "OffloadDelivery" }
    static let notes: [String: SchemaDescription] = [
        "ended_at": .time, "asked_at": .time("When the destination was last asked for the file, and had it."),
    ]
}

extension OffloadReport.File: NamedSchema {
    static var schemaName: String { "OffloadFile" }
    static let notes: [String: SchemaDescription] = [
        "modified_at": .time, "state": .schema(.fileState), "card": "The card's name.",
        "check": "Why it may not open: look at it before you format the card.",
        "timecode": "Of the first frame.", "first_frame": "A JPEG as a data: URL.",
        "last_frame": "A JPEG as a data: URL.",
    ]
}

extension OffloadReport.Card: NamedSchema {
    static var schemaName: String { "OffloadCard" }
    static let notes: [String: SchemaDescription] = [
        "name": "Unique among all cards.", "first_seen": .time, "last_read_error": .time,
        "missing": "Numbers that are missing from its runs of recordings.",
    ]
}

extension OffloadReport.Insertion: NamedSchema {
    static var schemaName: String { "OffloadInsertion" }
    static let notes: [String: SchemaDescription] = [
        "inserted_at": .time, "removed_at": .time, "verdict_at": .time,
    ]
}

extension OffloadReport.Insertion.Line: NamedSchema {
    static var schemaName: String { "OffloadLine" }
    static let notes: [String: SchemaDescription] = [
        "asked_at": .time, "destination": "Left out unless it had all files of the card.",
    ]
}
