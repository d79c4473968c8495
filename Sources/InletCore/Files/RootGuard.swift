/// By what a watched folder is recognised.
package struct RootMark: Sendable, Equatable, Codable {
    package var volume: VolumeIdentity
    /// The folder on that file system, wherever it is mounted; nil where it was not asked for.
    package var folder: String?
    /// Whether it was seen to become empty, or to stay so, until watching it ended in order.
    package var wasEmptied: Bool?

    package init(volume: VolumeIdentity, folder: String? = nil, wasEmptied: Bool? = nil) {
        self.volume = volume
        self.folder = folder
        self.wasEmptied = wasEmptied
    }
}

/// Whether a watched folder is the one that was watched before, or the empty place where it should be mounted.
package enum RootGuard {
    package enum Verdict: Sendable, Equatable {
        case watch
        /// Nothing of it is touched until it is back, or a person says that it is right so. Why, for people.
        case pause(String)
    }

    /// An empty folder is no harm by itself: nothing is ever deleted because a source is not there. But what waits in the queue
    /// would end as gone, and nobody would learn that a share or disk is missing. So it is paused unless it was seen to be
    /// emptied: that has told of itself.
    ///
    /// - Parameters:
    ///   - before: as it was watched last; nil = never, or by a version that did not ask.
    ///   - holdsFiles: whether the journal has files of it that wait, or that were kept in it.
    package static func judge(before: RootMark?, now: RootMark, isEmpty: Bool, holdsFiles: Bool) -> Verdict {
        guard holdsFiles else { return .watch }
        // A folder in memory is a new one after every start of the machine.
        if let before, before.volume.isLasting, before.volume.isSame(as: now.volume) == false {
            return .pause("it is on another file system (\(now.volume.key)) than before (\(before.volume.key))")
        }
        guard isEmpty else { return .watch }
        // Another folder of the same file system: what was mounted here is not.
        let isMoved = before?.folder != nil && before?.folder != now.folder
        if before?.wasEmptied == true, !isMoved { return .watch }
        return .pause(
            "it is empty, and the journal has files of it: is it not mounted? It goes on with the first file in it, or by "
                + "'inlet resume --root'")
    }
}
