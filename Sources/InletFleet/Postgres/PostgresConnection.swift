internal import CPostgres
package import InletCore
internal import InletLinux

/// A connection to PostgreSQL. Calls block, each up to its deadline.
///
/// Each call is one statement and its own transaction, without prepared statements or settings of the session: in
/// pgbouncer's transaction mode each may meet another server process.
///
/// Unchecked, because libpq's connection may be used from any thread, by one at a time, and this is its only owner.
package struct PostgresConnection: ~Copyable, @unchecked Sendable {
    /// A retried statement waits this long at most, doubled each time.
    private static let pause = Duration.milliseconds(20)
    private static let mostAttempts = 6

    private let pq: inlet_pq
    private let connection: OpaquePointer
    private let redactor: Redactor
    private let server: String
    /// An answer was not read to its end: what comes would be taken for the next one's.
    private var isSpent = false

    /// Tries the servers in their order, each for the address's `connect_timeout`.
    package init(_ address: PostgresAddress, application: String) throws(FleetError) {
        let pq = try PostgresLibrary.functions()
        let (connection, server) = try Self.connected(address, application, pq)
        _ = pq.PQsetnonblocking(connection, 1)
        (self.pq, self.connection, self.server) = (pq, connection, server)
        redactor = Self.redactor(address, connection, pq)
    }

    deinit { pq.PQfinish(connection) }

    /// As `server_version_num`: 150018.
    package var serverVersion: Int32 { pq.PQserverVersion(connection) }
    package var isEncrypted: Bool { pq.PQsslInUse(connection) == 1 }
    package var tlsVersion: String? { pq.PQsslAttribute(connection, "protocol").map { String(cString: $0) } }
    /// Otherwise make another one.
    package var isUsable: Bool { !isSpent && pq.PQstatus(connection) == CONNECTION_OK }

    /// Runs one statement with its parameters. Deadlocks and conflicts of transactions are tried again until `limit`.
    ///
    /// After an error that `isAway` the statement may have been done, or still be.
    package mutating func run(
        _ sql: String, _ values: [PostgresValue] = [], within limit: Duration = .seconds(15)
    ) throws(FleetError) -> PostgresRows {
        let deadline = Deadline(limit)
        var attempt = 1
        while true {
            do throws(PostgresFailure) {
                try send(sql, values)
                return try answer(by: deadline)
            } catch {
                let isAlone = pq.PQtransactionStatus(connection) == PQTRANS_IDLE
                guard error.isPassing, isAlone, attempt < Self.mostAttempts, !deadline.isPast else {
                    throw self.error(error, of: sql)
                }
                let most = Self.pause * (1 << attempt)
                // It only waits: where the machine cannot, the next attempt comes at once.
                _ = try? Poll.wait(-1, until: .now + most * Double.random(in: 0.1...1))
                attempt += 1
            }
        }
    }

    /// Runs many statements without parameters, for the schema. One that fails ends it, and undoes an open transaction.
    package mutating func runScript(_ sql: String) throws(FleetError) {
        do throws(PostgresFailure) {
            try send(script: sql)
            _ = try answer(by: Deadline(.seconds(300)))
        } catch {
            if isUsable, pq.PQtransactionStatus(connection) != PQTRANS_IDLE {
                do throws(FleetError) {
                    _ = try run("ROLLBACK")
                } catch {
                    // The script's own failure is the one to report; this connection is used no more.
                    isSpent = true
                }
            }
            throw self.error(error, of: "")
        }
    }

    /// Runs one statement and gives its rows one by one, each as soon as it is there. The server may take a minute for
    /// each. Where `row` throws, or a row is missing, the connection is not usable any more.
    package mutating func stream(
        _ sql: String, _ values: [PostgresValue], _ row: (PostgresRows) throws -> Void
    ) throws {
        do throws(PostgresFailure) {
            try send(sql, values)
            _ = pq.PQsetSingleRowMode(connection)
        } catch { throw self.error(error, of: sql) }
        isSpent = true
        while true {
            let rows: PostgresRows?
            do throws(PostgresFailure) { rows = try nextRow(by: Deadline(.seconds(60))) } catch {
                throw self.error(error, of: sql)
            }
            guard let rows else { break }
            try row(rows)
        }
        isSpent = false
    }

    private func error(_ failure: PostgresFailure, of sql: String) -> FleetError {
        failure.error(of: sql, at: server, hiding: redactor)
    }

    private static func redactor(_ address: PostgresAddress, _ connection: OpaquePointer, _ pq: inlet_pq) -> Redactor {
        // It may come from ~/.pgpass.
        let used = pq.PQpass(connection).map { Secret(String(cString: $0)) }
        return Redactor(address.secrets + (used.map { [$0] } ?? []))
    }
}

// MARK: - Statements

extension PostgresConnection {
    private struct Deadline {
        let instant: ContinuousClock.Instant
        let limit: Duration

        init(_ limit: Duration) { (instant, self.limit) = (.now + limit, limit) }

        var isPast: Bool { ContinuousClock.now >= instant }
    }

    private func send(_ sql: String, _ values: [PostgresValue]) throws(PostgresFailure) {
        try checkUsable()
        guard let parameters = PostgresParameters(values) else {
            throw .misuse("a text has a NUL character in it, which PostgreSQL cannot hold")
        }
        let isSent = parameters.withPointers { pointers in
            pq.PQsendQueryParams(
                connection, sql, Int32(pointers.count), parameters.types, pointers, parameters.lengths,
                parameters.formats, 0)
        }
        guard isSent == 1 else { throw lost() }
    }

    private func send(script: String) throws(PostgresFailure) {
        try checkUsable()
        guard pq.PQsendQuery(connection, script) == 1 else { throw lost() }
    }

    private func checkUsable() throws(PostgresFailure) {
        guard isUsable else { throw .lost("the connection is closed") }
    }

    private func lost() -> PostgresFailure { .lost(pq.message(of: connection)) }

    /// The rows of the last statement. All answers are read, whichever failed.
    private mutating func answer(by deadline: Deadline) throws(PostgresFailure) -> PostgresRows {
        var (rows, failure) = (PostgresRows(), PostgresFailure?.none)
        try flush(by: deadline)
        while let result = try nextResult(by: deadline) {
            defer { pq.PQclear(result) }
            switch pq.PQresultStatus(result) {
            case PGRES_TUPLES_OK: rows = PostgresRows(result, pq)
            case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: rows = PostgresRows()
            case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
                isSpent = true
                throw .misuse("COPY is not supported")
            default: failure = failure ?? PostgresFailure(result, pq, connection)
            }
        }
        if let failure { throw failure }
        return rows
    }

    /// nil after the last one.
    private mutating func nextRow(by deadline: Deadline) throws(PostgresFailure) -> PostgresRows? {
        try flush(by: deadline)
        while let result = try nextResult(by: deadline) {
            defer { pq.PQclear(result) }
            switch pq.PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE: return PostgresRows(result, pq)
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK: continue
            default: throw PostgresFailure(result, pq, connection)
            }
        }
        return nil
    }

    /// Until the statement is with the kernel. A server that has much to say first is heard.
    private mutating func flush(by deadline: Deadline) throws(PostgresFailure) {
        while true {
            switch pq.PQflush(connection) {
            case 0: return
            case 1: try wait(toWrite: true, by: deadline)
            default: throw lost()
            }
            // The connection is gone: libpq has the reason for `nextResult`.
            if pq.PQconsumeInput(connection) == 0 { return }
        }
    }

    /// nil after the last one.
    private mutating func nextResult(by deadline: Deadline) throws(PostgresFailure) -> OpaquePointer? {
        while pq.PQisBusy(connection) == 1 {
            // After the deadline nothing is read, however much the server sends.
            try wait(toWrite: false, by: deadline)
            guard pq.PQconsumeInput(connection) == 0 else { continue }
            // With its socket closed libpq does not wait for more, and gives the reason as a result.
            guard pq.PQstatus(connection) == CONNECTION_BAD else {
                isSpent = true
                throw lost()
            }
            break
        }
        return pq.PQgetResult(connection)
    }

    private mutating func wait(toWrite: Bool, by deadline: Deadline) throws(PostgresFailure) {
        do throws(SystemError) {
            let isReady = try Poll.wait(pq.PQsocket(connection), toWrite: toWrite, until: deadline.instant)
            if isReady, !deadline.isPast { return }
        } catch {
            isSpent = true
            throw .lost(error.description)
        }
        isSpent = true
        throw .late(deadline.limit)
    }
}

// MARK: - Connecting

extension PostgresConnection {
    /// One after the other: libpq's own list of servers waits for a silent one for ever when it does not block.
    private static func connected(
        _ address: PostgresAddress, _ application: String, _ pq: inlet_pq
    ) throws(FleetError) -> (OpaquePointer, String) {
        var last = FleetError(.away, "cannot reach \(address.display)")
        for server in address.servers {
            do throws(FleetError) {
                for place in try places(of: server) {
                    do throws(FleetError) {
                        return (try connected(to: place, address, application, pq), server.display)
                    } catch  where error.isAway { last = error }
                }
            } catch  where error.isAway { last = error }
        }
        throw last
    }

    /// The server by each of its addresses. A name server that is silent takes half a minute (getaddrinfo(3)).
    private static func places(of server: PostgresAddress.Server) throws(FleetError) -> [PostgresAddress.Server] {
        guard let name = server.name, !server.isSocket, server.address == nil else { return [server] }
        do throws(NameLookup.Failure) {
            return try NameLookup.addresses(of: name).map { .init(name: name, address: $0, port: server.port) }
        } catch {
            throw FleetError(.away, "cannot reach \(server.display) (\(error))")
        }
    }

    private static func connected(
        to place: PostgresAddress.Server, _ address: PostgresAddress, _ application: String, _ pq: inlet_pq
    ) throws(FleetError) -> OpaquePointer {
        guard let connection = begin(place, address, application, pq) else {
            throw FleetError(.away, "cannot reach \(place.display) (no memory)")
        }
        do throws(PostgresFailure) {
            try finish(connection, address.patience, pq)
            return connection
        } catch {
            let redactor = redactor(address, connection, pq)
            pq.PQfinish(connection)
            throw error.error(connectingTo: place.display, as: address.user, hiding: redactor)
        }
    }

    private static func begin(
        _ place: PostgresAddress.Server, _ address: PostgresAddress, _ application: String, _ pq: inlet_pq
    ) -> OpaquePointer? {
        var options = address.options.mapValues { $0.reveal() }
        (options["host"], options["hostaddr"], options["port"]) = (place.name, place.address, place.port)
        (options["client_encoding"], options["fallback_application_name"]) = ("UTF8", application)
        // PQconnectStartParams(3): both lists end with NULL, and are copied.
        let (keywords, values) = (options.keys.map { strings($0) }, options.values.map { strings($0) })
        defer { for text in keywords + values { text.deallocate() } }
        let ends: [UnsafePointer<CChar>?] = [nil]
        let connection = pq.PQconnectStartParams(
            keywords.map { UnsafePointer($0) } + ends, values.map { UnsafePointer($0) } + ends, 0)
        // With the SQLSTATE of why a server lets nobody in, which libpq gives nowhere else.
        _ = pq.PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
        _ = pq.PQsetNoticeReceiver(connection, inlet_pq_ignore, nil)
        return connection
    }

    private static func strings(_ text: String) -> UnsafeMutablePointer<CChar> {
        let bytes = Array(text.utf8CString)
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        copy.initialize(from: bytes, count: bytes.count)
        return copy
    }

    private static func finish(
        _ connection: OpaquePointer, _ patience: Duration, _ pq: inlet_pq
    ) throws(PostgresFailure) {
        let deadline = ContinuousClock.now + patience
        var state = PGRES_POLLING_WRITING
        while pq.PQstatus(connection) != CONNECTION_BAD, state != PGRES_POLLING_FAILED {
            if state == PGRES_POLLING_OK { return }
            let isReady: Bool
            do throws(SystemError) {
                let toWrite = state == PGRES_POLLING_WRITING
                isReady = try Poll.wait(pq.PQsocket(connection), toWrite: toWrite, until: deadline)
            } catch { throw .lost(error.description) }
            guard isReady, ContinuousClock.now < deadline else { throw .late(patience) }
            state = pq.PQconnectPoll(connection)
        }
        throw PostgresFailure(connecting: pq.message(of: connection))
    }
}
