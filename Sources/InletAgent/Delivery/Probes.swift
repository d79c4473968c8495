internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Asks destinations that are down whether they are back, when their breaker says that it is time.
struct Probes: Service {
    let board: DestinationBoard
    let bells: WorkBells
    /// Rings when a destination goes down.
    let bell: Doorbell
    /// Makes a destination anew, with the values that its `${env:}` and `${file:}` have now.
    let renew: @Sendable (String) -> Destination?

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                for old in board.dueProbes() {
                    let destination = renewed(old)
                    let event: CircuitBreaker.Event
                    var failure: DeliveryError?
                    do throws(DeliveryError) {
                        _ = try await destination.pipeline.probe()
                        event = .probeSucceeded
                    } catch {
                        event = .probeFailed(credentials: error.verdict == .credentials)
                        failure = error
                    }
                    if board.report(destination.name, event, reason: failure?.reason, code: failure?.code) {
                        bells.ringAll()
                    }
                }
                let next = board.nextProbe().map { ContinuousClock.now.advanced(by: max($0 - .now, .milliseconds(50))) }
                await bell.wait(until: next)
            }
        }
    }

    /// A destination that refused our credentials is probed with those that the configuration gives now.
    private func renewed(_ destination: Destination) -> Destination {
        guard board.refusesCredentials(destination.name), let fresh = renew(destination.name) else {
            return destination
        }
        board.replace(fresh)
        return fresh
    }
}
