package import SystemPackage

/// Remembers folders whose changes raise no events, and decides what each needs at the next look.
///
/// Adding a name changes a folder's times, if the file system maintains them; a folder with the same time
/// (`FileIdentity.touched`) then needs no listing. A folder counts as known once a listing has begun 2 s after its time
/// was first seen, so that a coarse or foreign clock hides nothing.
package struct PollState: Sendable {
    /// Whether a folder's time shows added names.
    package enum Times: Sendable, Hashable {
        case always
        case never
        /// Unknown until observed: on shares it depends on the server.
        case whenSeen
    }

    package enum ScanAction: Sendable, Hashable {
        case skip
        /// List the names, and compare them with the last ones.
        case names
        /// Look at all files in it.
        case files
    }

    private struct Look: Sendable {
        var modified: Int64?
        /// When this time was first seen.
        var since: ContinuousClock.Instant
        /// Whether an earlier time was seen before.
        var isWitnessed = false
        /// Whether a listing that began long enough after `since` has ended.
        var isKnown = false
        /// The names of the last listing, and the folder's time before it.
        var names: UInt64?
        var listedAt: Int64?
    }

    /// The coarsest clock of a file system.
    private static let coarsest = Duration.seconds(2)
    /// While a folder is young, its files are checked every time: names do not show a writer that pauses for longer
    /// than the settle time.
    private static let youth = Duration.seconds(600)

    private var looks: [FilePath: Look] = [:]
    /// Folders that stay until their next listing has ended.
    private var leaving: Set<FilePath> = []

    package init() {}

    package var count: Int { looks.count }
    package var isEmpty: Bool { looks.isEmpty }
    package var directories: [FilePath] { Array(looks.keys) }
    package func contains(_ directory: FilePath) -> Bool { looks[directory] != nil }

    /// A folder exists with this time; its files are being checked elsewhere.
    package mutating func enter(_ directory: FilePath, modified: Int64?, at now: ContinuousClock.Instant) {
        leaving.remove(directory)
        guard let look = looks[directory] else {
            looks[directory] = Look(modified: modified, since: now)
            return
        }
        if look.modified != modified { renew(directory, modified, now) }
    }

    /// Events report the folder's changes from now on: check all its files once more, then forget it.
    package mutating func leave(_ directory: FilePath) {
        guard looks[directory] != nil else { return }
        looks[directory]?.isKnown = false
        leaving.insert(directory)
    }

    /// Whether folders wait for their last look.
    package var isBeingLeft: Bool { !leaving.isEmpty }

    /// What to do with a folder with this time.
    package func act(
        on directory: FilePath, modified: Int64, times: Times, at now: ContinuousClock.Instant, wall: WallTime
    ) -> ScanAction {
        guard let look = looks[directory], look.modified == modified, look.isKnown else { return .files }
        let isOldByClock = !look.isWitnessed && wall - WallTime(nanoseconds: modified) >= Self.youth
        if !isOldByClock, look.since.duration(to: now) < Self.youth { return .files }
        return times == .always ? .skip : .names
    }

    /// A listing of the folder begins.
    package mutating func begin(_ directory: FilePath, modified: Int64, at now: ContinuousClock.Instant) {
        if looks[directory]?.modified != modified { renew(directory, modified, now) }
    }

    /// A listing that began at `start`, with the folder's time `modified`, has ended.
    ///
    /// - Returns: whether changed names changed the folder's time; nil without evidence.
    package mutating func listed(
        _ directory: FilePath, modified: Int64, names: UInt64, from start: ContinuousClock.Instant
    ) -> Bool? {
        guard var look = looks[directory], look.modified == modified else { return nil }
        if leaving.contains(directory) {
            remove(directory)
            return nil
        }
        var evidence: Bool?
        if let last = look.names, last != names {
            if look.listedAt != modified { evidence = true } else if look.isKnown { evidence = false }
        }
        if look.since.duration(to: start) >= Self.coarsest { look.isKnown = true }
        look.names = names
        look.listedAt = modified
        looks[directory] = look
        return evidence
    }

    /// The names of the last listing, summed as in `sum(of:)`.
    package func names(in directory: FilePath) -> UInt64? { looks[directory]?.names }

    package mutating func remove(_ directory: FilePath) {
        looks[directory] = nil
        leaving.remove(directory)
    }

    package mutating func remove(below directory: FilePath) {
        looks = looks.filter { !$0.key.isWithin(directory) }
        leaving = leaving.filter { !$0.isWithin(directory) }
    }

    private mutating func renew(_ directory: FilePath, _ modified: Int64?, _ now: ContinuousClock.Instant) {
        var look = looks[directory] ?? Look(modified: modified, since: now)
        look.isWitnessed = looks[directory] != nil && look.modified != nil
        (look.modified, look.since, look.isKnown) = (modified, now, false)
        looks[directory] = look
    }
}

extension PollState {
    /// A name's contribution to the sum of a set of names in any order, with overflow (FNV-1a).
    package static func sum(of name: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash | 1
    }

    /// The pause after a complete look that took `cost`. Looking takes at most 2 % of the time, but no pause exceeds
    /// five minutes, or `least` if that is more.
    package static func pause(after cost: Duration, least: Duration) -> Duration {
        max(least, min(cost * 49, .seconds(300)))
    }
}
