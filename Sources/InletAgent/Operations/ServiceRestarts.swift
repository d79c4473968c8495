internal import InletCore
internal import ServiceLifecycle
internal import Synchronization

/// A part of the agent that has ended although nobody asked it to.
package struct ServiceIncident: Sendable, Equatable {
    /// What it does, in words.
    package var service: String
    package var reason: String

    package init(service: String, reason: String) { (self.service, self.reason) = (service, reason) }
}

/// Runs parts of the agent that have no end of their own. One that ends unasked is an incident: it is said, shown until the
/// part has run for a while again, and the part begins anew after a pause.
final class ServiceRestarts: Sendable {
    private struct Entry {
        var reason: String
        /// When it began anew; nil while that is waited for.
        var since: ContinuousClock.Instant?
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let log: EventLog
    private let first: Duration

    private static let longest = Duration.seconds(60)
    /// What has run for so long is well.
    private static let calm = Duration.seconds(60)

    /// - Parameter first: how long is waited before it begins anew; twice as long each time, up to a minute.
    init(log: EventLog, first: Duration = .seconds(1)) { (self.log, self.first) = (log, first) }

    func incidents(at now: ContinuousClock.Instant = .now) -> [ServiceIncident] {
        entries.withLock { entries in
            entries.filter { entry in entry.value.since.map { $0.duration(to: now) < Self.calm } ?? true }
        }.map { ServiceIncident(service: $0.key, reason: $0.value.reason) }.sorted { $0.service < $1.service }
    }

    /// Runs `work` until the task is cancelled or the agent stops.
    ///
    /// - Parameter service: what it does, as a person is told.
    func keep(_ service: String, _ work: () async throws -> Void) async {
        var pause = first
        while !Self.isAsked {
            let begun = ContinuousClock.now
            let reason: String
            do {
                try await work()
                reason = "it ended without a reason"
            } catch {
                reason = "\(error)"
            }
            if Self.isAsked { break }
            if begun.duration(to: .now) > Self.calm { pause = first }
            entries.withLock { $0[service] = Entry(reason: reason) }
            log.emit(.serviceFailed(service: service, reason: reason, wait: pause))
            // Ends early only when it is asked to, which the loop sees.
            try? await cancelWhenGracefulShutdown { [pause] in try await Task.sleep(for: pause) }
            pause = min(pause * 2, Self.longest)
            entries.withLock { $0[service]?.since = .now }
        }
        entries.withLock { $0[service] = nil }
    }

    private static var isAsked: Bool { Task.isCancelled || Task.isShuttingDownGracefully }
}
