/// Notes are read by later builds, and by earlier ones after a step back: what a note does not have yet reads as its
/// default, and what it has beside is passed over. Only what a note is nothing without is asked for.
extension VOPIRecord.Upload {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        publicURL = try note.required("publicURL")
        // Without an end of its URL the upload is asked for anew, unless the bytes are there.
        url = note["url"] ?? ""
        expires = note["expires"] ?? 0
        contentType = note["contentType"] ?? "video/mp4"
    }
}

extension VOPIRecord.Sent {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        md5 = note["md5"] ?? ""
        etag = note["etag"]
        isProved = note["isProved"] ?? false
    }
}

extension VOPIRecord.Creating {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        sentAt = note["sentAt"] ?? 0
        lookAt = note["lookAt"] ?? 0
        looks = note["looks"] ?? 0
    }
}

extension VOPIRecord.Job {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        id = try note.required("id")
        since = note["since"] ?? 0
        isAdopted = note["isAdopted"] ?? false
        isFetching = note["isFetching"] ?? false
        fetchingSince = note["fetchingSince"]
        stuckSince = note["stuckSince"]
        seen = note["seen"]
    }
}

extension VOPIRecord.Trouble {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        failures = note["failures"] ?? []
        since = note["since"]
        missing = note["missing"] ?? 0
        cancelledAt = note["cancelledAt"]
        silentSince = note["silentSince"]
        silentSeen = note["silentSeen"]
        leftAt = note["leftAt"]
    }
}

extension VOPIManifest {
    init(from decoder: any Decoder) throws {
        let note = try NoteReader(decoder)
        entries = note["entries"] ?? []
        expected = note["expected"]
    }
}

/// The members of a note by their names.
private struct NoteReader {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private let members: KeyedDecodingContainer<Key>

    init(_ decoder: any Decoder) throws { members = try decoder.container(keyedBy: Key.self) }

    /// nil for what is not there, and for what is something else than is wanted.
    subscript<Value: Decodable>(name: String) -> Value? {
        try? members.decodeIfPresent(Value.self, forKey: Key(stringValue: name))
    }

    func required<Value: Decodable>(_ name: String) throws -> Value {
        try members.decode(Value.self, forKey: Key(stringValue: name))
    }
}
