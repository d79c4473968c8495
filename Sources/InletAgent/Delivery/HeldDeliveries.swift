internal import InletLinux
internal import ServiceLifecycle

/// Takes the workers back from deliveries that a limit of 0 holds: those of other destinations need them. What only waits for
/// an answer, or reads back what it has sent, goes on to its end. Sleeps while no limit is 0.
struct HeldDeliveries: Service {
    let board: DestinationBoard
    let inFlight: InFlight
    let signals: Signals
    /// A limit that is 0 for less than this ends nothing: a part that is begun anew costs its bytes.
    let patience: Duration

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var clock = ShutClock(patience: patience)
            await signals.loop(on: .limit) {
                let now = ContinuousClock.now
                let busy = clock.due(board.shut, at: now).filter { inFlight.sendBack(heldAt: $0) }
                return clock.nextLook(busy, at: now)
            }
        }
    }
}

/// Since when the limits of destinations are 0. Decides when to look at what runs there.
struct ShutClock: Sendable {
    typealias Instant = ContinuousClock.Instant

    let patience: Duration
    private var since: [String: Instant] = [:]

    init(patience: Duration) { self.patience = patience }

    /// Takes note of those whose limit is 0 now. - Returns: where nothing may be held any longer.
    mutating func due(_ shut: Set<String>, at now: Instant) -> [String] {
        since = Dictionary(uniqueKeysWithValues: shut.map { ($0, since[$0] ?? now) })
        return since.filter { $0.value.duration(to: now) >= patience }.keys.sorted()
    }

    /// When to look again; nil = only when another limit becomes 0.
    ///
    /// - Parameter busy: where something still runs, which may yet want to send.
    func nextLook(_ busy: [String], at now: Instant) -> Instant? {
        let waiting = since.values.filter { $0.duration(to: now) < patience }.map { $0.advanced(by: patience) }
        return (waiting + (busy.isEmpty ? [] : [now.advanced(by: max(patience, .milliseconds(10)))])).min()
    }
}
