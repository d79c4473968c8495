package import InletCore
internal import InletLinux

/// The two clocks by which the agent decides whom to try when: the civil one, and the one that never jumps. Tests turn both.
package struct AgentClock: Sendable {
    package var now: @Sendable () -> WallTime
    package var instant: @Sendable () -> ContinuousClock.Instant

    package init(
        now: @escaping @Sendable () -> WallTime = { .now },
        instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.now = now
        self.instant = instant
    }
}
