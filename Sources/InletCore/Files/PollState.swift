package import SystemPackage

/// What is remembered of folders whose changes raise no events, and what each needs at the next look.
///
/// A folder's times change when a name is added to it, where the file system keeps them so; then a folder with the same time
/// (`FileIdentity.touched`) need not be listed. It counts as known once a listing has begun two seconds after that time was
/// first seen: a coarse clock, or one that is not this machine's, hides nothing.
package struct PollState: Sendable {
    /// Whether a folder's time tells that names were added.
    package enum Times: Sendable, Hashable {
        case always
        case never
        /// Unknown until it is observed: on shares it depends on the server.
        case whenSeen
    }

    package enum ScanAction: Sendable, Hashable {
        case skip
        /// The names are listed, and compared with those of the last time.
        case names
        /// All files in it are looked at.
        case files
    }

    private struct Look: Sendable {
        var modified: Int64?
        /// When this time was first seen.
        var since: ContinuousClock.Instant
        /// Another one was seen before.
        var isWitnessed = false
        /// A listing that began long enough after `since` has ended.
        var isKnown = false
        /// Those of the last listing, and the time before it.
        var names: UInt64?
        var listedAt: Int64?
    }

    /// No file system's clock is coarser.
    private static let coarsest = Duration.seconds(2)
    /// While a folder is young its files are looked at every time: a writer that pauses for longer than the settle time
    /// would not be seen by the names.
    private static let youth = Duration.seconds(600)

    private var looks: [FilePath: Look] = [:]
    /// Those that are in it until their next listing has ended.
    private var leaving: Set<FilePath> = []

    package init() {}

    package var count: Int { looks.count }
    package var isEmpty: Bool { looks.isEmpty }
    package var directories: [FilePath] { Array(looks.keys) }
    package func contains(_ directory: FilePath) -> Bool { looks[directory] != nil }

    /// A folder is there, with this time; its files are being looked at by others.
    package mutating func enter(_ directory: FilePath, modified: Int64?, at now: ContinuousClock.Instant) {
        leaving.remove(directory)
        guard let look = looks[directory] else {
            looks[directory] = Look(modified: modified, since: now)
            return
        }
        if look.modified != modified { renew(directory, modified, now) }
    }

    /// Events report the folder's changes from now on: all its files are looked at once more, then it is forgotten.
    package mutating func leave(_ directory: FilePath) {
        guard looks[directory] != nil else { return }
        looks[directory]?.isKnown = false
        leaving.insert(directory)
    }

    /// Whether folders wait for their last look.
    package var isBeingLeft: Bool { !leaving.isEmpty }

    /// What a folder with this time needs now.
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

    /// A listing that began at `start`, when the folder had the time `modified`, has come to its end.
    ///
    /// - Returns: whether names that changed have changed the folder's time; nil when nothing was shown of that.
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

    /// The names of the last listing, as `sum(of:)` counts them.
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
    /// What a name adds, with overflow, to the number of a set of names, which come in any order (FNV-1a).
    package static func sum(of name: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash | 1
    }

    /// The pause after a look at everything that took `cost`: looking takes two hundredths of the time at most, but no pause is
    /// longer than five minutes, or than `least` where that is more.
    package static func pause(after cost: Duration, least: Duration) -> Duration {
        max(least, min(cost * 49, .seconds(300)))
    }
}
