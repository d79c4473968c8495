internal import CPostgres
internal import InletCore

/// The answer of a statement, as text.
package struct PostgresRows: Sendable {
    package private(set) var count = 0
    package private(set) var columns: [String] = []
    /// Row by row; nil is NULL.
    private var values: [String?] = []

    /// Of a statement without rows.
    init() {}

    /// Copies what `result` has, which stays its owner's.
    init(_ result: OpaquePointer, _ pq: inlet_pq) {
        count = Int(pq.PQntuples(result))
        columns = (0..<pq.PQnfields(result)).map { pq.PQfname(result, $0).map { String(cString: $0) } ?? "" }
        values.reserveCapacity(count * columns.count)
        for row in 0..<Int32(count) {
            for column in 0..<Int32(columns.count) {
                let value = pq.PQgetisnull(result, row, column) == 1 ? nil : pq.PQgetvalue(result, row, column)
                values.append(value.map { String(cString: $0) })
            }
        }
    }

    /// nil is NULL.
    package subscript(row: Int, column: Int) -> String? { values[row * columns.count + column] }

    package func integer(_ row: Int, _ column: Int) -> Int64? { self[row, column].flatMap { Int64($0) } }

    package func boolean(_ row: Int, _ column: Int) -> Bool? { self[row, column].map { $0 == "t" } }

    /// Of a `boolean[]`; NULL counts as false.
    package func booleans(_ row: Int, _ column: Int) -> [Bool] { texts(row, column).map { $0 == "t" } }

    /// Of a `bytea`.
    package func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
        guard let text = self[row, column], text.hasPrefix("\\x") else { return nil }
        return Digest(.sha256, hex: String(text.dropFirst(2)))?.bytes
    }

    /// The elements of an array of one dimension; none for NULL.
    package func texts(_ row: Int, _ column: Int) -> [String?] {
        guard let text = self[row, column], text.hasPrefix("{"), text.hasSuffix("}"), text != "{}" else { return [] }
        var elements: [String?] = []
        var (element, isQuoted, wasQuoted, isEscaped) = ([UInt8](), false, false, false)
        func end() {
            let text = String(decoding: element, as: UTF8.self)
            elements.append(text == "NULL" && !wasQuoted ? nil : text)
            (element, wasQuoted) = ([], false)
        }
        for byte in text.utf8.dropFirst().dropLast() {
            switch byte {
            case _ where isEscaped:
                element.append(byte)
                isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = true
            case UInt8(ascii: "\""): (isQuoted, wasQuoted) = (!isQuoted, true)
            case UInt8(ascii: ",") where !isQuoted: end()
            default: element.append(byte)
            }
        }
        end()
        return elements
    }
}
