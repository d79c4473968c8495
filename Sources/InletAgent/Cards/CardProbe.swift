internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Asks a card's medium whether it is still there.
final class CardProbe: Sendable {
    enum Answer: Sendable, Equatable {
        /// With a number that changes with its files.
        case there(free: UInt64)
        case pulled
    }

    /// Whether a read has not returned: then no second one is begun.
    private let isAsking = Atomic<Bool>(false)

    /// Blocks, at most for `patience`: a read of a dead card may never return, and that is an answer too.
    func ask(_ mount: FilePath, _ device: UInt64, within patience: Duration) -> Answer {
        if isAsking.load(ordering: .acquiring) { return .pulled }
        isAsking.store(true, ordering: .releasing)
        do throws(SystemError) {
            let answer = try LoopThread.result(name: "probe", within: patience) { [self] () -> Answer in
                defer { isAsking.store(false, ordering: .releasing) }
                if case .failed = DirectRead.probe(mount, device: device) { return .pulled }
                // Without it, only such changes stay unseen.
                return .there(free: (try? FreeSpace.fingerprint(mount)) ?? 0)
            }
            return answer ?? .pulled
        } catch {
            // The system has no thread to ask with: nothing is known of the card.
            isAsking.store(false, ordering: .releasing)
            return .there(free: 0)
        }
    }
}
