internal import GRDB
internal import GRDBSQLite
internal import InletCore
internal import SystemPackage

/// A value for a statement; nil is NULL.
protocol SQLValue: Sendable {
    var stored: StoredValue { get }
}

/// SQLite's types.
enum StoredValue {
    case integer(Int64)
    case text(String)
    case bytes([UInt8])
    case null
}

extension Int64: SQLValue { var stored: StoredValue { .integer(self) } }
extension Int: SQLValue { var stored: StoredValue { .integer(Int64(self)) } }
/// Numbers of inodes and devices.
extension UInt64: SQLValue { var stored: StoredValue { .integer(Int64(bitPattern: self)) } }
extension Bool: SQLValue { var stored: StoredValue { .integer(self ? 1 : 0) } }
extension WallTime: SQLValue { var stored: StoredValue { .integer(milliseconds) } }
extension String: SQLValue { var stored: StoredValue { .text(self) } }
extension [UInt8]: SQLValue { var stored: StoredValue { .bytes(self) } }
extension FilePath: SQLValue { var stored: StoredValue { .bytes(bytes) } }
extension Optional: SQLValue where Wrapped: SQLValue { var stored: StoredValue { self?.stored ?? .null } }

extension RawRepresentable where RawValue: SQLValue { var stored: StoredValue { rawValue.stored } }
extension DeliveryState: SQLValue {}
extension ErrorCode: SQLValue {}
extension FileState: SQLValue {}
extension Lane: SQLValue {}
extension NotificationEvent: SQLValue {}

extension Sequence where Element: RawRepresentable<String> {
    /// As literals of a statement, between commas.
    var literals: String { map { "'\($0.rawValue)'" }.joined(separator: ", ") }
}

/// The current row of a statement; valid until the statement moves on.
struct SQLRow {
    private let statement: OpaquePointer

    fileprivate init(_ statement: OpaquePointer) { self.statement = statement }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    func int(_ column: Int32) -> Int { Int(integer(column)) }

    func bool(_ column: Int32) -> Bool { integer(column) != 0 }

    func time(_ column: Int32) -> WallTime { WallTime(milliseconds: integer(column)) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    func optionalTime(_ column: Int32) -> WallTime? { isNull(column) ? nil : time(column) }

    /// The whole text: one from a server or a sidecar may contain a NUL, which ends it only in C.
    func text(_ column: Int32) -> String? {
        guard let start = sqlite3_column_text(statement, column) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Empty for NULL and for an empty value.
    func bytes(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(statement, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }

    func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }
    /// The labels of a unit or a file, for uses that work with or without them: unreadable ones count as none.
    func labels(_ column: Int32) -> [String: String] { JSON.note(optionalBytes(column)) ?? [:] }

    func path(_ column: Int32) -> FilePath { FilePath(bytes: bytes(column)) }

    /// Below 0, 0 or above 0 where the column's bytes sort before, are, or sort after those of `path`.
    func order(_ column: Int32, _ path: FilePath) -> Int {
        // SQLite answers with no address for an empty value.
        let start = sqlite3_column_blob(statement, column)
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
        return path.withPlatformString { path in
            for (place, byte) in bytes.enumerated() {
                let other = UInt8(bitPattern: path[place])
                // The end of the path comes before every byte.
                if byte != other || other == 0 { return other == 0 ? 1 : Int(byte) - Int(other) }
            }
            return path[bytes.count] == 0 ? 0 : -1
        }
    }

    /// From five columns, `size` to `device`.
    func identity(_ first: Int32) -> FileIdentity {
        FileIdentity(
            size: integer(first), modified: integer(first + 1), changed: integer(first + 2),
            inode: UInt64(bitPattern: integer(first + 3)), device: UInt64(bitPattern: integer(first + 4)))
    }
}

/// Statements in every file's path, run through SQLite's own calls: GRDB's arguments and rows cost several times the
/// statement itself. GRDB keeps the connection, the prepared statements and the transactions.
extension Database {
    /// Runs a statement without rows. - Returns: the number of rows it changed.
    @discardableResult
    func change(_ sql: String, _ values: any SQLValue...) throws -> Int { try change(sql, values) }

    @discardableResult
    func change(_ sql: String, _ values: [any SQLValue]) throws -> Int {
        try step(sql, values) { _ in }
        return changesCount
    }

    /// The results of `read` for each row, in their order. `read` must not run the same statement.
    func rows<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLRow) throws -> Value) throws -> [Value] {
        try rows(sql, values, read: read)
    }

    func rows<Value>(_ sql: String, _ values: [any SQLValue], read: (SQLRow) throws -> Value) throws -> [Value] {
        var found: [Value] = []
        try step(sql, values) { found.append(try read($0)) }
        return found
    }

    /// The first row, or nil.
    func row<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLRow) throws -> Value) throws -> Value? {
        var found: Value?
        try step(sql, values) { row in
            if found == nil { found = try read(row) }
        }
        return found
    }

    /// Whether there is a row.
    func exists(_ sql: String, _ values: any SQLValue...) throws -> Bool { try exists(sql, values) }

    func exists(_ sql: String, _ values: [any SQLValue]) throws -> Bool {
        try !rows(sql, values) { _ in true }.isEmpty
    }

    /// The first value of the first row; nil for no row, and for NULL.
    func integer(_ sql: String, _ values: any SQLValue...) throws -> Int64? {
        try rows(sql, values) { $0.optionalInteger(0) }.first ?? nil
    }

    /// The same for a time.
    func time(_ sql: String, _ values: any SQLValue...) throws -> WallTime? {
        try rows(sql, values) { $0.optionalTime(0) }.first ?? nil
    }

    /// The first value of each row.
    func integers(_ sql: String, _ values: any SQLValue...) throws -> [Int64] {
        try rows(sql, values) { $0.integer(0) }
    }

    private func step(_ sql: String, _ values: [any SQLValue], _ body: (SQLRow) throws -> Void) throws {
        let statement = try cachedStatement(sql: sql).sqliteStatement
        // GRDB shares the prepared statements and resets one only when it runs it the next time; until then it accepts
        // no values.
        sqlite3_reset(statement)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        // A missing value would be NULL, and the statement would silently change nothing.
        guard sqlite3_bind_parameter_count(statement) == values.count else { throw failure(SQLITE_RANGE, sql) }
        for (index, value) in values.enumerated() {
            let code = Self.bind(value.stored, Int32(index + 1), statement)
            if code != SQLITE_OK { throw failure(code, sql) }
        }
        while true {
            let code = sqlite3_step(statement)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw failure(code, sql) }
            try body(SQLRow(statement))
        }
    }

    private static func bind(_ value: StoredValue, _ index: Int32, _ statement: OpaquePointer) -> Int32 {
        switch value {
        case .integer(let number): return sqlite3_bind_int64(statement, index, number)
        case .null: return sqlite3_bind_null(statement, index)
        // An empty string may have no address, which SQLite would take for NULL.
        case .text(""): return sqlite3_bind_text(statement, index, "", 0, copied)
        case .text(var text):
            return text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), copied)
                }
            }
        case .bytes(let bytes):
            return bytes.isEmpty
                ? sqlite3_bind_zeroblob(statement, index, 0)
                : bytes.withUnsafeBytes {
                    sqlite3_bind_blob(statement, index, $0.baseAddress, Int32($0.count), copied)
                }
        }
    }

    /// SQLITE_TRANSIENT: SQLite copies the bytes before the call returns. The macro is a cast that Swift does not
    /// import.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private func failure(_ code: Int32, _ sql: String) -> DatabaseError {
        // Not every refusal comes from the connection itself.
        let last = sqliteConnection.map(sqlite3_extended_errcode) ?? code
        let extended = last & 0xFF == code & 0xFF ? last : code
        let message = sqliteConnection.flatMap(sqlite3_errmsg).map { String(cString: $0) }
        return DatabaseError(resultCode: ResultCode(rawValue: extended), message: message, sql: sql)
    }
}

#if DEBUG
    extension Journal {
        /// Calls `note` with each statement that SQLite runs here, except triggers' statements, until this is called
        /// with nil. Tests use it to ask for query plans.
        package func trace(_ note: (@Sendable (String) -> Void)?) async throws {
            // Work that waits for the connection is done before.
            try await database.writeWithoutTransaction { database in
                guard let note else { return database.trace(options: []) }
                database.trace(options: .statement) { event in
                    guard case .statement(let statement) = event, !statement.sql.hasPrefix("--") else { return }
                    note(statement.sql)
                }
            }
        }
    }
#endif
