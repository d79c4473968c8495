/// Who is next, so that all who wait get the same number of bytes: start-time fair queueing (Goyal, Vin and Cheng 1996).
///
/// Each has a tag, the bytes it was given, and the least one is next. Who begins to wait does so at the tag of the one
/// served last, so nobody saves up turns while away. Of any two who wait all the time, what they were given differs by no
/// more than the two largest pieces.
struct FairOrder<Key: Hashable & Comparable & Sendable>: Sendable {
    private var tags: [Key: Int64] = [:]
    /// The tag of the one served last.
    private var served: Int64 = 0

    /// `key` begins to wait. For one that waits already nothing changes, unless it was passed over: its missed turns are
    /// forgotten.
    mutating func enter(_ key: Key) { tags[key] = max(tags[key] ?? served, served) }

    /// The next of `keys`, which have all entered; of equal ones the least key.
    func first(of keys: some Sequence<Key>) -> Key? {
        var first: (key: Key, tag: Int64)?
        for key in keys {
            let tag = tags[key] ?? served
            if let best = first, (best.tag, best.key) < (tag, key) { continue }
            first = (key, tag)
        }
        return first?.key
    }

    /// `key` was served with a piece of `bytes`.
    mutating func serve(_ key: Key, _ bytes: Int64) {
        let tag = tags[key] ?? served
        served = max(served, tag)
        tags[key] = tag + bytes
    }

    mutating func remove(_ key: Key) { tags[key] = nil }
}
