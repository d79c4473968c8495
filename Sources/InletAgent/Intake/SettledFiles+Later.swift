internal import InletCore
internal import InletLinux

/// What is looked at again because of ourselves, not because of a writer: nobody is to be told that somebody has it open.
extension Settler.Look {
    /// - Parameter wait: for most, what is in the way is over in a moment.
    static func later(_ why: String, _ wait: Duration = .milliseconds(200)) -> Self { .waiting(for: wait, why: why) }

    /// Its content is to be read, and enough was read in this turn.
    static var comparedLater: Self { later("waiting to be compared with what is known of it", .milliseconds(50)) }

    static var belongingsUnsettled: Self { later("what it belongs together with is not complete") }
}
