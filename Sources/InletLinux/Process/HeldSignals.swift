import CLinux
import Glibc
import Synchronization

/// Signals that would end or stop the process, kept back until what was changed of the terminal is as it was: `take` says
/// which has come, `deliver` has it do what it is for. One of them at a time in a process.
final class HeldSignals: Sendable {
    /// What a signal handler may touch: which have come, a bit each, and the eventfd that says so.
    private static let come = Atomic<UInt64>(0)
    private static let bell = Atomic<CInt>(-1)

    private let numbers: [CInt]
    /// What was to happen at each of them before, which is nobody's to decide here. nil once it is so again.
    private let former: Mutex<[CInt: sigaction]?>
    private let waker: Waker

    /// A signal that is ignored, as `nohup` has it, stays so.
    init(_ numbers: [CInt]) throws(SystemError) {
        waker = try Waker()
        var former: [CInt: sigaction] = [:]
        for number in numbers {
            var action = sigaction()
            sigaction(number, nil, &action)
            if unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) != Self.ignored {
                former[number] = action
            }
        }
        self.numbers = numbers.filter { former[$0] != nil }
        self.former = Mutex(former)
        Self.come.store(0, ordering: .relaxed)
        Self.bell.store(waker.number, ordering: .releasing)
        for number in self.numbers { Self.hold(number) }
    }

    /// Can be read, for `poll(2)`, when one has come.
    var number: CInt { waker.number }

    func take() -> CInt? {
        waker.drain()
        let come = Self.come.exchange(0, ordering: .acquiring)
        let found = numbers.filter { come & Self.bit($0) != 0 }
        // Of several the others are for later.
        for other in found.dropFirst() { Self.note(other) }
        return found.first
    }

    /// What the signal does without this. Returns when a process that was stopped goes on.
    func deliver(_ number: CInt) {
        putBack(number)
        var (mask, former) = (sigset_t(), sigset_t())
        sigemptyset(&mask)
        sigaddset(&mask, number)
        pthread_sigmask(SIG_UNBLOCK, &mask, &former)
        raise(number)
        pthread_sigmask(SIG_SETMASK, &former, nil)
        Self.hold(number)
    }

    /// Gives the signals back, once: what somebody has them do later stays.
    func release() {
        if former.withLock({ $0 == nil }) { return }
        for number in numbers { putBack(number) }
        former.withLock { $0 = nil }
        Self.bell.store(-1, ordering: .releasing)
    }

    private func putBack(_ number: CInt) {
        guard var action = former.withLock({ $0?[number] }) else { return }
        sigaction(number, &action, nil)
    }

    deinit { release() }

    private static let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
    private static func bit(_ number: CInt) -> UInt64 { 1 << UInt64(number) }

    private static func hold(_ number: CInt) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { HeldSignals.note($0) }
        // Reads and writes of other threads go on.
        action.sa_flags = SA_RESTART
        sigaction(number, &action, nil)
    }

    /// For signal handlers too: nothing is allocated, and errno stays.
    private static func note(_ number: CInt) {
        let former = errno
        come.bitwiseOr(bit(number), ordering: .releasing)
        var one: UInt64 = 1
        _ = write(bell.load(ordering: .acquiring), &one, 8)
        errno = former
    }
}
