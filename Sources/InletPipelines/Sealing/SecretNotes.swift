internal import FoundationEssentials
internal import InletCore

/// Which notes hold what only we may know, and what is left of them without it.
enum SecretNotes {
    /// nil for a note without secrets.
    static func stripped(_ name: String, _ note: [UInt8]) -> [UInt8]? {
        if name == UploadRecord.openingName, let plain = UploadRecord.stripped(note) { return plain }
        return DestinationKinds.all.lazy.compactMap { $0.withoutSecrets(name, note) }.first
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
