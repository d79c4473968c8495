internal import CPostgres
package import InletCore
internal import Synchronization

/// libpq, PostgreSQL's client library: opened by the first who needs it.
package enum PostgresLibrary {
    /// Nothing but addresses of code, which stay as they are.
    struct Functions: @unchecked Sendable { let table: inlet_pq }

    /// The first with `tcp_user_timeout`, as PQlibVersion(3) counts.
    private static let oldest: Int32 = 120_000
    /// A failure is not kept: the library may be installed meanwhile.
    private static let opened = Mutex<Functions?>(nil)

    /// Opens it, once in a process.
    package static func load() throws(FleetError) { _ = try functions() }

    /// As PQlibVersion(3) counts, such as 150018; nil where it is not there.
    package static var version: Int32? {
        // `load` gives the reason.
        (try? functions())?.PQlibVersion()
    }

    static func functions() throws(FleetError) -> inlet_pq {
        try opened.withLock { opened throws(FleetError) in
            if let opened { return opened.table }
            let functions = try open("libpq.so.5")
            opened = functions
            return functions.table
        }
    }

    static func open(_ file: String) throws(FleetError) -> Functions {
        let table = UnsafeMutablePointer<inlet_pq>.allocate(capacity: 1)
        defer { table.deallocate() }
        if let problem = inlet_pq_load(table, file) {
            throw FleetError(.library, unfit(DisplayText.escape(String(cString: problem).utf8)))
        }
        let version = table.pointee.PQlibVersion()
        guard version >= oldest else { throw FleetError(.library, unfit("it is of version \(version / 10_000)")) }
        return Functions(table: table.pointee)
    }

    private static func unfit(_ reason: String) -> String { "libpq cannot be used: \(reason)" }
}

extension inlet_pq {
    /// Why the last call of a connection failed: the first line. The others are advice, or what followed from it.
    func message(of connection: OpaquePointer) -> String {
        let text = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        return text.split(separator: "\n").first.map { String($0) } ?? "no reason given"
    }
}
