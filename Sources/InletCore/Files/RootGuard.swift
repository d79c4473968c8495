/// By what a watched folder is recognised.
package struct RootMark: Sendable, Equatable, Codable {
    package var volume: VolumeIdentity

    package init(volume: VolumeIdentity) { self.volume = volume }
}

/// Whether a watched folder is the one that was watched before, or the empty place where it should be mounted.
package enum RootGuard {
    package enum Verdict: Sendable, Equatable {
        case watch
        /// Nothing of it is touched until it is back, or a person says that it is right so. Why, for people.
        case pause(String)
    }

    /// - Parameters:
    ///   - before: as it was watched last; nil = never, or by a version that did not ask.
    ///   - holdsFiles: whether the journal has files of it that wait, or that were kept in it.
    package static func judge(before: RootMark?, now: RootMark, isEmpty: Bool, holdsFiles: Bool) -> Verdict {
        guard holdsFiles else { return .watch }
        if let before {
            // What is not there any more of the same file system, somebody has removed.
            if before == now { return .watch }
            // A folder in memory is a new one after every start of the machine.
            let same = before.volume.isLasting ? before.volume.isSame(as: now.volume) : nil
            if same == true { return .watch }
            if same == false {
                return .pause("it is on another file system (\(now.volume.key)) than before (\(before.volume.key))")
            }
        }
        return isEmpty ? .pause("it is empty, and the journal has files of it: is it not mounted?") : .watch
    }
}
