internal import InletCore

/// The markers of a file that the server is known to have taken: it has answered that it made them, or has listed them.
///
/// Kept in the journal, so that no later attempt sends one of them again, whatever the server lists by then.
struct MarkerTally: Sendable, Equatable {
    /// The one note that the journal keeps when a delivery has failed, for `queue retry`. Its value is the session's id, and
    /// after it the numbers of the markers: `ID 0-99 200-299`.
    static let note = CheckpointNote.mayBeVisible

    /// The only session that the numbers are about.
    let session: String
    private(set) var taken = RangeSet<Int>()

    init(session: String) { self.session = session }

    /// What the notes say of a session; nothing for another one, and for a note that cannot be read.
    ///
    /// - Parameter count: markers in the file; higher numbers are none of its.
    init(_ entries: [String: [UInt8]], session: String, count: Int) {
        self.init(session: session)
        let words = Self.words(entries)
        guard let noted = words.first, RoboscopeID.areEqual(noted, session) else { return }
        for word in words.dropFirst() {
            let ends = word.split(separator: "-").compactMap { Int($0) }
            guard ends.count == 2, 0 <= ends[0], ends[0] <= ends[1], ends[1] < count else { continue }
            taken.insert(contentsOf: ends[0]..<ends[1] + 1)
        }
    }

    /// The session that an earlier attempt has sent to, or was about to.
    static func session(_ entries: [String: [UInt8]]) -> String? { words(entries).first }

    private static func words(_ entries: [String: [UInt8]]) -> [String] {
        String(decoding: entries[note] ?? [], as: UTF8.self).split(separator: " ").map { String($0) }
    }

    var bytes: [UInt8] {
        let ranges = taken.ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
        return Array(([session] + ranges).joined(separator: " ").utf8)
    }

    var count: Int { Self.count(taken) }

    /// - Returns: whether there is one among them that was not known to be taken.
    mutating func add(_ numbers: RangeSet<Int>) -> Bool {
        let before = taken
        taken.formUnion(numbers)
        return taken != before
    }

    /// Quickest for numbers that go up.
    static func set(_ numbers: some Sequence<Int>) -> RangeSet<Int> {
        numbers.reduce(into: RangeSet()) { $0.insert(contentsOf: $1..<$1 + 1) }
    }

    /// How many of the markers that were taken are not among those that are listed.
    func missing(from listed: RangeSet<Int>) -> Int { Self.count(taken.subtracting(listed)) }

    private static func count(_ set: RangeSet<Int>) -> Int { set.ranges.reduce(0) { $0 + $1.count } }
}
