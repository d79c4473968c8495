internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Keeps credentials alive that end when they are not used: asks the destinations that have such once an hour, also while
/// nothing is delivered. Of those that could not be renewed for days a person is told while there is time. Without any it
/// sleeps for good, and it never touches the journal.
struct KeepAlive: Service {
    let board: DestinationRegistry
    let log: EventLog
    /// Probes find out when refused credentials work again.
    let signals: Signals
    var interval = Duration.seconds(3600)
    var now: @Sendable () -> WallTime = { .now }

    /// How often the same login is warned of.
    private static let day = Duration.seconds(86_400)

    func run() async throws {
        guard !board.perishable().isEmpty else {
            // Ends when the agent stops, or the task is cancelled; both are an end.
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown {
            var troubles: [String: String] = [:]
            var warnings: [String: WallTime] = [:]
            while !Task.isCancelled {
                for destination in board.perishable() {
                    troubles[destination.name] = await keep(destination, lastTrouble: troubles[destination.name])
                    warnings[destination.name] = await warn(destination, last: warnings[destination.name])
                }
                // Cancelled, it is the end of the loop.
                try? await Task.sleep(for: interval)
            }
        }
    }

    /// - Parameter last: when it was last warned of this login.
    /// - Returns: the same, after this look.
    private func warn(_ destination: Destination, last: WallTime?) async -> WallTime? {
        let time = now()
        guard let warning = await destination.renewal?()?.warning(now: time) else { return nil }
        if let last, time - last < Self.day { return last }
        log.emit(.loginOld(destination: destination.name, reason: warning))
        return time
    }

    /// - Parameter lastTrouble: what went wrong an hour ago; the same again is not said twice.
    /// - Returns: what went wrong now; nil when nothing did.
    private func keep(_ destination: Destination, lastTrouble: String?) async -> String? {
        do throws(DeliveryError) {
            try await destination.keepAlive?()
            return nil
        } catch {
            guard !Task.isCancelled else { return lastTrouble }
            if error.verdict == .credentials {
                board.report(destination.name, .credentials, reason: error.reason)
                signals.raise(.destination)
            } else if error.reason != lastTrouble {
                log.emit(.destinationTrouble(destination: destination.name, reason: error.reason))
            }
            return error.reason
        }
    }
}
