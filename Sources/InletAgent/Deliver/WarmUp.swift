internal import InletLinux
internal import Synchronization

/// Counts what is delivered, and now and then gives back the code that only the first deliveries needed: after 8 files or
/// parts, 64, 512 and so on, so that it costs nothing in the long run.
package final class WarmUp: Sendable {
    private let count = Atomic<Int>(0)

    package init() {}

    /// A file or a part of one has been sent.
    package func step() {
        let now = count.add(1, ordering: .relaxed).newValue
        if Self.isDue(now) { ProcessMemory.releaseColdPages() }
    }

    /// Whether `count` is a power of 8, and not the first.
    static func isDue(_ count: Int) -> Bool {
        count > 1 && count.nonzeroBitCount == 1 && count.trailingZeroBitCount.isMultiple(of: 3)
    }
}
