package import InletCore
internal import InletLinux

/// The two clocks by which the agent decides whom to try when: the civil one, and one that never jumps and stands while the
/// machine sleeps, when nobody could have been sent anything. Tests turn both.
package struct AgentClock: Sendable {
    package var now: @Sendable () -> WallTime
    package var instant: @Sendable () -> SuspendingClock.Instant

    package init(
        now: @escaping @Sendable () -> WallTime = { .now },
        instant: @escaping @Sendable () -> SuspendingClock.Instant = { .now }
    ) {
        self.now = now
        self.instant = instant
    }
}
