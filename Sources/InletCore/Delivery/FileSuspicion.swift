/// Which files may be the cause of what looks like an outage: answers that came to their deliveries and to nobody else's.
///
/// The first such answer is the destination's. When the same file gets one again, and in between either another file was
/// delivered, or a probe was good and no other file got such an answer, then it is that file's.
package struct FileSuspicion: Sendable, Equatable {
    private var files: Set<Int64> = []
    /// Another file was delivered since the last answer that was held against the destination.
    private var othersWereDelivered = false
    /// Who alone got the last answer of this kind; nil when several did.
    private var last: Int64?
    /// The one for whom a probe since then speaks: the destination is fine, but for it.
    private var probed: Int64?

    /// More suspects than this begin anew.
    private static let most = 1000

    package init() {}

    /// Takes note of an answer to `file` that could be its own fault or the destination's. - Returns: whether it is its own.
    ///
    /// - Parameter byDeliveriesOnly: a probe does not speak for the destination.
    package mutating func blames(_ file: Int64, byDeliveriesOnly: Bool = false) -> Bool {
        if files.contains(file), othersWereDelivered || probed == file && !byDeliveriesOnly { return true }
        if files.count >= Self.most { files = [] }
        files.insert(file)
        (othersWereDelivered, probed, last) = (false, nil, file)
        return false
    }

    /// A delivery that was under way got such an answer too.
    package mutating func shared(by file: Int64) { if file != last { last = nil } }

    package mutating func delivered(_ file: Int64) {
        if files.isEmpty { return }
        files.remove(file)
        othersWereDelivered = true
    }

    package mutating func probeSucceeded() { probed = last }

    /// The destination itself was away: what the files got says nothing about them.
    package mutating func clear() { self = FileSuspicion() }
}
