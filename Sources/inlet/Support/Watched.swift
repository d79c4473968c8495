/// Work that somebody looks at while it runs.
enum Watched {
    private static let interval = Duration.milliseconds(150)

    /// Runs `work`, and calls `show` again and again until it ends.
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value, show: () -> Void
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            func tick() {
                group.addTask {
                    try await Task.sleep(for: interval)
                    return nil
                }
            }
            group.addTask { try await work() }
            tick()
            while let ended = try await group.next() {
                if let value = ended {
                    group.cancelAll()
                    return value
                }
                show()
                tick()
            }
            throw CancellationError()
        }
    }
}
