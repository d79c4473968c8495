import Glibc
import Testing

@testable import InletLinux

/// Signals that are kept back for a while do afterwards what they did before.
@Suite(.serialized) struct HeldSignalTests {
    private static func action(_ number: CInt) -> UInt {
        var now = sigaction()
        sigaction(number, nil, &now)
        return unsafeBitCast(now.__sigaction_handler.sa_handler, to: UInt.self)
    }

    @Test func `a handler that was there is there again, and one that came later stays`() throws {
        let number = SIGWINCH
        var own = sigaction()
        own.__sigaction_handler.sa_handler = { _ in }
        var before = sigaction()
        sigaction(number, &own, &before)
        defer { sigaction(number, &before, nil) }
        let handler = Self.action(number)
        let held = try HeldSignals([number])
        #expect(Self.action(number) != handler)
        held.deliver(number)
        #expect(held.take() == nil && Self.action(number) != handler)
        held.release()
        #expect(Self.action(number) == handler)
        sigaction(number, &before, nil)
        held.release()
        #expect(Self.action(number) == unsafeBitCast(before.__sigaction_handler.sa_handler, to: UInt.self))
    }

    @Test func `what was as the system has it is so again`() throws {
        let number = SIGURG
        let before = Self.action(number)
        let held = try HeldSignals([number])
        #expect(Self.action(number) != before)
        held.release()
        #expect(Self.action(number) == before)
    }
}
