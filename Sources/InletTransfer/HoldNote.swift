internal import Synchronization

/// Whether anything that a task does waits for its bytes under a limit: its own requests, and those of its child tasks.
///
/// A limit of 0 can hold for hours. Who has given a task a worker sees here whether the worker is of use.
package final class HoldNote: Sendable {
    /// That of the running task; nil where nobody asks.
    @TaskLocal package static var current: HoldNote?

    private let count = Atomic<Int>(0)

    package init() {}

    package var isHeld: Bool { count.load(ordering: .relaxed) > 0 }

    /// Something begins to wait; each is followed by an `end`.
    package func begin() { count.add(1, ordering: .relaxed) }
    package func end() { count.subtract(1, ordering: .relaxed) }
}
