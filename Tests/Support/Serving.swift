internal import Logging
internal import ServiceLifecycle

/// Runs a server beside `body`, and ends it in order afterwards.
///
/// A server that is simply cancelled may have accepted a connection that nobody handles any more, and swift-nio ends the
/// process for that. In order means: no more connections, then the end of those that are there. What does not end by
/// itself within five seconds is cancelled.
///
/// A few at a time in one process, whatever the number of tests that run side by side: on two cores more servers would
/// starve each other's time bounds.
package func whileServing<Result: Sendable>(
    _ serve: @escaping @Sendable () async throws -> Void, _ body: () async throws -> Result
) async throws -> Result {
    var configuration = ServiceGroupConfiguration(
        services: [.init(service: Serving(serve: serve), successTerminationBehavior: .ignore)],
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    configuration.maximumGracefulShutdownDuration = .seconds(5)
    let group = ServiceGroup(configuration: configuration)
    await serverSeats.take()
    defer { serverSeats.leave() }
    return try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        do {
            let result = try await body()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return result
        } catch {
            await group.triggerGracefulShutdown()
            while (try? await tasks.next()) != nil {}
            throw error
        }
    }
}

private let serverSeats = Seats(8)

private struct Serving: Service {
    let serve: @Sendable () async throws -> Void

    func run() async throws { try await serve() }
}
