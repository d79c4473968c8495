internal import InletLinux
internal import Synchronization

/// What the service manager is told of the agent's life, in the one order that is true: first that it is ready, last that it
/// stops. A reload is spoken of only in between, because `READY=1` ends it: of one before the start is over nobody hears, and
/// one that ends after the stop has begun does not take that back.
final class ManagerNews: Sendable {
    private enum Phase {
        case starting
        case ready
        case reloading
        case stopping
    }

    /// nil: nobody listens.
    let notify: ServiceNotify?
    private let phase = Mutex(Phase.starting)

    init(_ notify: ServiceNotify?) { self.notify = notify }

    func ready() {
        change(from: [.starting], to: .ready) { $0.send("READY=1") }
    }

    func reloading() {
        change(from: [.ready], to: .reloading) { $0.reloading() }
    }

    func reloaded() {
        change(from: [.reloading], to: .ready) { $0.send("READY=1") }
    }

    func stopping() {
        change(from: [.starting, .ready, .reloading], to: .stopping) { $0.send("STOPPING=1") }
    }

    /// Sent while the phase is held, so that what two say at a time comes in the order of the phases; sending does not block.
    private func change(from: Set<Phase>, to next: Phase, _ tell: (ServiceNotify) -> Void) {
        phase.withLock { phase in
            guard from.contains(phase) else { return }
            phase = next
            if let notify { tell(notify) }
        }
    }
}
