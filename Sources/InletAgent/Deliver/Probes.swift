internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Probes destinations that are down or unproved when their breaker asks for it, side by side, so that one that hangs
/// delays no other.
struct Probes: Service {
    let shared: Shared
    /// Makes a destination anew, with the present values of its `${env:}` and `${file:}`.
    let renew: @Sendable (String) -> Destination?
    /// It reads files for that.
    private let pool = BlockingPool(name: "renew", threads: 1)

    /// A probe without an answer by then has failed.
    private static let limit = Duration.seconds(30)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                await shared.signals[.destination].loop {
                    if shared.destinations.reopen() { shared.signals.raiseDeliverable() }
                    for destination in shared.destinations.dueProbes() {
                        shared.destinations.report(destination.name, .probeBegan)
                        group.addTask { await probe(destination) }
                    }
                    return shared.destinations.nextLook().map { .now.advanced(by: max($0 - .now, .milliseconds(50))) }
                }
            }
        }
    }

    private func probe(_ old: Destination) async {
        let destination = await renewed(old)
        let failure = await Self.failure(of: destination.pipeline)
        if Task.isCancelled { return }
        let event: CircuitBreaker.Event =
            failure.map { .probeFailed(credentials: $0.verdict == .credentials) } ?? .probeSucceeded
        if shared.destinations.report(destination.name, event, reason: failure?.reason, code: failure?.code).opens {
            shared.signals.raiseDeliverable()
        }
        shared.signals.raise(.destination)
    }

    /// - Returns: nil when the destination answers and accepts the credentials.
    private static func failure(of pipeline: any Pipeline) async -> DeliveryError? {
        await withTaskGroup(of: DeliveryError?.self) { group in
            group.addTask {
                do throws(DeliveryError) {
                    _ = try await pipeline.probe()
                    return nil
                } catch {
                    return error
                }
            }
            group.addTask {
                // Cancelled when the probe has answered; the answer is read first.
                await Task.rest(for: limit)
                return DeliveryError(.outage(after: nil), .timedOut, "no answer to a check within \(limit)")
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// A destination that refused the credentials is probed with the configuration's present ones.
    private func renewed(_ destination: Destination) async -> Destination {
        guard let state = shared.destinations.state(of: destination.name), state.refusesCredentials,
            let fresh = await pool.run({ renew(destination.name) })
        else { return destination }
        shared.destinations.replace(fresh, of: state.generation)
        return fresh
    }
}
