internal import Logging
internal import ServiceLifecycle
internal import Synchronization

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
    await Seats.shared.take()
    defer { Seats.shared.leave() }
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

private struct Serving: Service {
    let serve: @Sendable () async throws -> Void

    func run() async throws { try await serve() }
}

/// Who may run a server now.
private final class Seats: Sendable {
    static let shared = Seats(8)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
