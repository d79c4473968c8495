import Glibc
import Synchronization

/// The places where tests end the process by `SIGKILL`, to prove that nothing is lost or done twice there.
///
/// Debug builds read `INLET_FAILPOINT`, which names one of them, and `name:N` its Nth passing. Release builds do nothing.
package enum Failpoint: String, CaseIterable, Sendable {
    case admitted
    case claimed
    /// A step has been done, and its note is about to be written.
    case noting
    case uploadCreated
    case partUploaded
    case beforeComplete
    case afterComplete
    case delivered
    case intentWritten
    case renamedAway
    case disposed
    case finished

    @inline(__always)
    package func reached() {
        #if DEBUG
            Armed.pass(self)
        #endif
    }
}

#if DEBUG
    /// The failpoint that the environment names, read once.
    private enum Armed {
        private static let target: (point: Failpoint, passing: Int)? = {
            guard let text = ProcessSetup.environment("INLET_FAILPOINT") else { return nil }
            let parts = text.split(separator: ":", maxSplits: 1)
            guard let name = parts.first, let point = Failpoint(rawValue: String(name)) else { return nil }
            return (point, parts.count == 2 ? Int(parts[1]) ?? 1 : 1)
        }()
        private static let passed = Atomic<Int>(0)

        static func pass(_ point: Failpoint) {
            guard let target, target.point == point else { return }
            let count = passed.wrappingAdd(1, ordering: .relaxed).newValue
            if count == target.passing { kill(getpid(), SIGKILL) }
        }
    }
#endif
