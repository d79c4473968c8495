internal import InletCore

/// A parameter of a statement.
///
/// Only bytes have a type of their own. The others take the one that the statement gives them: that of the function's
/// argument, or of a cast.
package enum PostgresValue: Sendable {
    case null
    case text(String)
    case integer(Int64)
    case boolean(Bool)
    case bytes([UInt8])
    case texts([String?])
    case integers([Int64?])
    case uuids([String])
    case byteArrays([[UInt8]])

    /// As text in PostgreSQL's notation; nil for NULL and for bytes, which go as they are.
    var text: String? {
        switch self {
        case .null, .bytes: nil
        case .text(let text): text
        case .integer(let number): String(number)
        case .boolean(let value): value ? "t" : "f"
        case .texts(let texts): Self.array(texts.map { $0.map(Self.quoted) })
        case .integers(let numbers): Self.array(numbers.map { $0.map { String($0) } })
        case .uuids(let uuids): Self.array(uuids.map(Self.quoted))
        case .byteArrays(let arrays): Self.array(arrays.map { "\"\\\\x\($0.hex)\"" })
        }
    }

    private static func array(_ elements: [String?]) -> String {
        "{" + elements.map { $0 ?? "NULL" }.joined(separator: ",") + "}"
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

/// The parameters of one call, as PQsendQueryParams(3) takes them.
struct PostgresParameters {
    /// The OID of `bytea` (pg_type.dat).
    private static let bytea: UInt32 = 17

    /// All of them, one behind the other; texts end in a zero.
    private var packed: [UInt8] = []
    private var offsets: [Int?] = []
    private(set) var lengths: [Int32] = []
    /// 0: text; 1: the bytes themselves.
    private(set) var formats: [Int32] = []
    /// 0: as the statement says.
    private(set) var types: [UInt32] = []

    /// nil when a text has a NUL character, which PostgreSQL cannot hold.
    init?(_ values: [PostgresValue]) {
        for value in values {
            if case .bytes(let bytes) = value {
                append(bytes, type: Self.bytea, format: 1)
            } else if let text = value.text {
                guard !text.utf8.contains(0) else { return nil }
                append(Array(text.utf8), type: 0, format: 0)
            } else {
                offsets.append(nil)
                lengths.append(0)
                formats.append(0)
                types.append(0)
            }
        }
    }

    private mutating func append(_ bytes: [UInt8], type: UInt32, format: Int32) {
        offsets.append(packed.count)
        lengths.append(Int32(bytes.count))
        formats.append(format)
        types.append(type)
        packed += bytes
        packed.append(0)
    }

    func withPointers<Result>(_ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
        packed.withUnsafeBytes { packed in
            body(
                offsets.map { $0.flatMap { packed.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self) } })
        }
    }
}
