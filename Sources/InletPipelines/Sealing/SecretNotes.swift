internal import FoundationEssentials
internal import InletCore

/// Which notes hold what only we may know, and what is left of them without it.
enum SecretNotes {
    /// nil for a note without secrets.
    static func stripped(_ name: String, _ note: [UInt8]) -> [UInt8]? {
        switch name {
        case UploadRecord.openingName: UploadRecord.stripped(note) ?? VOPIRecord.Upload.stripped(note)
        case GigHiveReply.noteName: GigHiveReply.stripped(note)
        default: nil
        }
    }

    static func read<Value: Decodable>(_ note: [UInt8]) -> Value? {
        // A note of another version holds nothing that is known.
        try? JSONDecoder().decode(Value.self, from: Data(note))
    }

    static func write(_ value: some Encodable) -> [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Plain values always encode.
        return (try? encoder.encode(value)).map { Array($0) }
    }
}

extension VOPIRecord.Upload {
    /// Without the URL that the video is sent to, and without the one that it is known by where that one is signed, too.
    static func stripped(_ note: [UInt8]) -> [UInt8]? {
        guard var upload: Self = SecretNotes.read(note) else { return nil }
        let isSigned = upload.publicURL.contains("?")
        if upload.url.isEmpty, !isSigned { return nil }
        upload.url = ""
        if isSigned { upload.publicURL = "" }
        return SecretNotes.write(upload)
    }
}

extension GigHiveReply {
    /// Without the token that deletes the file.
    static func stripped(_ note: [UInt8]) -> [UInt8]? {
        guard var reply: Self = SecretNotes.read(note), reply.deleteToken != nil || reply.statusNonce != nil else {
            return nil
        }
        (reply.deleteToken, reply.statusNonce) = (nil, nil)
        return SecretNotes.write(reply)
    }
}
