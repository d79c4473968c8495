internal import Foundation

/// A type whose schema is known without looking at its members.
protocol SchemaSample {
    static var schema: Schema { get }
    /// Any value of it.
    static var sample: Self? { get }
}

/// An enumeration of words: the document names all.
extension SchemaSample where Self: CaseIterable & RawRepresentable, RawValue == String {
    static var schema: Schema { .word(allCases.map(\.rawValue)) }
    static var sample: Self? { allCases.first }
}

extension String: SchemaSample {
    static let schema = Schema.text
    static var sample: String? { "" }
}

extension Data: SchemaSample {
    static let schema = Schema.text
    static var sample: Data? { Data() }
}

extension Bool: SchemaSample {
    static let schema = Schema.flag
    static var sample: Bool? { false }
}

extension Double: SchemaSample {
    static let schema = Schema.number
    static var sample: Double? { 0 }
}

extension SchemaSample where Self: FixedWidthInteger {
    static var schema: Schema { .integer }
    static var sample: Self? { 0 }
}

extension Int: SchemaSample {}
extension Int64: SchemaSample {}
extension UInt8: SchemaSample {}

extension Array: SchemaSample {
    static var schema: Schema { .list(SchemaReader.schema(of: Element.self)) }
    static var sample: [Element]? { [] }
}

extension Dictionary: SchemaSample {
    static var schema: Schema { .map(SchemaReader.schema(of: Value.self)) }
    static var sample: [Key: Value]? { [:] }
}

extension Optional: SchemaSample {
    static var schema: Schema { SchemaReader.schema(of: Wrapped.self) }
    static var sample: Wrapped?? { .some(nil) }
}

/// Decodes a type from nothing to see which members it asks for: those that it decodes if they are there may be left out, the
/// others are required.
final class SchemaReader: Decoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var fields: [Schema.Field] = []
    /// Whether a member was asked for that is decoded next: how the standard library decodes a text or a number if it is there.
    private var isOptional = false

    /// What a member of `type` is described as; anything where the type does not tell.
    static func schema(of type: Any.Type) -> Schema {
        if let type = type as? any NamedSchema.Type { return .named(type) }
        if let type = type as? any SchemaSample.Type { return type.schema }
        if let type = type as? any Decodable.Type { return members(of: type, [:]) }
        return .anything
    }

    static func members<Value: Decodable>(of type: Value.Type, _ notes: [String: SchemaDescription]) -> Schema {
        let reader = SchemaReader()
        do {
            _ = try Value(from: reader)
        } catch {
            // It does not tell its members.
            return .anything
        }
        return .object(
            reader.fields.map { field in
                var field = field
                field.schema = notes[field.name]?.schema ?? field.schema
                field.note = notes[field.name]?.text
                return field
            })
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Members(reader: self))
    }

    private func add(_ key: any CodingKey, _ type: Any.Type, isRequired: Bool) {
        let schema = Self.schema(of: type)
        fields.append(Schema.Field(name: key.stringValue, schema: schema, isRequired: isRequired))
        isOptional = false
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Self.untold }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Self.untold }

    fileprivate static let untold = DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: [], debugDescription: "this type does not tell its members"))

    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let reader: SchemaReader
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        func contains(_ key: Key) -> Bool {
            reader.isOptional = true
            return true
        }

        func decodeNil(forKey key: Key) -> Bool { false }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            reader.add(key, type, isRequired: !reader.isOptional)
            guard let sample = type as? any SchemaSample.Type else { return try Value(from: SchemaReader()) }
            guard let value = sample.sample as? Value else { throw SchemaReader.untold }
            return value
        }

        func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) -> Value? {
            reader.add(key, type, isRequired: false)
            return nil
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { throw SchemaReader.untold }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw SchemaReader.untold
        }

        func superDecoder() throws -> any Decoder { throw SchemaReader.untold }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw SchemaReader.untold }
    }
}
