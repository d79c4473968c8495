internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Keeps credentials alive that end when they are not used: asks the destinations that have such once an hour, also while
/// nothing is delivered. Without any it sleeps for good, and it never touches the journal.
struct KeepAlive: Service {
    let board: DestinationBoard
    let log: EventLog
    /// Rings for probes, which find out when refused credentials work again.
    let bell: Doorbell
    var interval = Duration.seconds(3600)

    func run() async throws {
        guard !board.perishable().isEmpty else {
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown {
            var troubles: [String: String] = [:]
            while !Task.isCancelled {
                for destination in board.perishable() {
                    troubles[destination.name] = await keep(destination, lastTrouble: troubles[destination.name])
                }
                try? await Task.sleep(for: interval)
            }
        }
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
                bell.ring()
            } else if error.reason != lastTrouble {
                log.emit(.destinationTrouble(destination: destination.name, reason: error.reason))
            }
            return error.reason
        }
    }
}
