internal import Foundation

/// The one encoding of structured columns; keys are sorted so that equal values have equal bytes.
enum JournalJSON {
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    static func decode<Value: Decodable>(_ data: Data) throws -> Value {
        try JSONDecoder().decode(Value.self, from: data)
    }
}
