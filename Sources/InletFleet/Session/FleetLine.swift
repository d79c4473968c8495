internal import InletCore
internal import InletLinux
internal import Synchronization

/// One connection with the thread that alone uses it.
final class FleetLine: Sendable {
    private let pool: BlockingPool
    /// Asked at each connection.
    private let address: @Sendable () -> Result<PostgresAddress, FleetError>
    /// Locked while a call runs: nobody but the thread wants it.
    private let connection = Mutex<PostgresConnection?>(nil)

    init(_ address: @escaping @Sendable () -> Result<PostgresAddress, FleetError>, name: String) {
        self.address = address
        pool = BlockingPool(name: name, threads: 1)
    }

    /// Runs `body` on the thread, after those before it.
    func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await pool.run(body)
    }

    // MARK: - On the thread

    /// Connects anew. - Returns: where to.
    @discardableResult
    func connect() throws(FleetError) -> PostgresAddress {
        close()
        let address = try address().get()
        try connection.withLock { (connection) throws(FleetError) in
            connection = try PostgresConnection(address, application: "inlet")
        }
        return address
    }

    /// Names the function in an error.
    func call(
        _ function: FleetFunction, _ values: [PostgresValue], within bound: Duration
    ) throws(FleetError) -> PostgresRows {
        do throws(FleetError) {
            return try run(function.statement, values, within: bound)
        } catch {
            var error = error
            error.function = function.name
            throw error
        }
    }

    func run(_ statement: String, _ values: [PostgresValue], within bound: Duration) throws(FleetError) -> PostgresRows
    {
        let rows = try connection.withLock { (connection) throws(FleetError) in
            try connection?.run(statement, values, within: bound)
        }
        guard let rows else { throw FleetError(.away, "the connection was closed") }
        return rows
    }

    var isUsable: Bool { connection.withLock { $0?.isUsable ?? false } }

    func close() { connection.withLock { $0 = nil } }
}
