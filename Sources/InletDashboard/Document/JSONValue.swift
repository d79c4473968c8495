internal import Foundation
internal import InletCore

/// Any JSON, as a value: what is made piece by piece, or passed on as it came.
enum JSONValue: Sendable, Equatable, Codable {
    case null
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        for kind in Self.kinds {
            // A decoder tells the type of a value by refusing all others.
            guard let found = try? kind(value) else { continue }
            self = found
            return
        }
        self = .object(try value.decode([String: JSONValue].self))
    }

    private static let kinds: [@Sendable (any SingleValueDecodingContainer) throws -> JSONValue?] = [
        { $0.decodeNil() ? .null : nil }, { .flag(try $0.decode(Bool.self)) },
        { .integer(try $0.decode(Int64.self)) }, { .number(try $0.decode(Double.self)) },
        { .text(try $0.decode(String.self)) }, { .list(try $0.decode([JSONValue].self)) },
    ]

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let flag): try container.encode(flag)
        case .integer(let integer): try container.encode(integer)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let object): try container.encode(object)
        }
    }

    /// On one line, keys in their order.
    static func bytes(of value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return JSONString.masked(Array(try encoder.encode(value)))
    }
}
