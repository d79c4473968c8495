internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Where folders are that the kernel names by handle, as far as that was asked already. What is remembered is bounded: a busy
/// file system has more folders than the root.
struct HandlePlaces: Sendable {
    enum Place: Sendable, Equatable {
        /// Relative to the root.
        case inside(FilePath)
        /// Not in the root, to be left alone, or gone.
        case outside
    }

    private var known: [FileHandle: Place] = [:]
    private let limit: Int

    init(limit: Int = 16_384) { self.limit = limit }

    var count: Int { known.count }

    subscript(handle: FileHandle) -> Place? { known[handle] }

    mutating func remember(_ handle: FileHandle, _ place: Place) {
        if known.count >= limit { known.removeAll(keepingCapacity: true) }
        known[handle] = place
    }

    /// A folder went elsewhere, and everything below it with it.
    mutating func forgetAll() { known.removeAll(keepingCapacity: true) }
}

/// What the records of a marked file system mean for a root, in inotify's words.
enum MarkedNews {
    /// The kernel puts several records about one name into the place of the first: what was created, deleted and created
    /// again is one record, and may come before others that were earlier. So the disk decides what has gone.
    ///
    /// - Parameter isThere: whether something has that name now; only asked of what is said to have gone.
    /// - Returns: the bits that are to be acted on. A new folder needs no look of its own: what happens in it is told.
    static func meaning(_ mask: InotifyRecord.Mask, isThere: () -> Bool) -> InotifyRecord.Mask {
        let gone = mask.intersection([.deleted, .movedFrom])
        let isDirectory = mask.contains(.isDirectory)
        guard !gone.isEmpty else { return isDirectory ? mask.subtracting(.created) : mask }
        guard isThere() else { return gone.union(mask.intersection(.isDirectory)) }
        // Of a folder what was below it is forgotten, and what is below it now is listed.
        return isDirectory ? gone.union([.movedTo, .isDirectory]) : .closedAfterWriting
    }

    /// The folder and the name that a record is about; nil for one that is about the root itself. `.` is the folder itself.
    static func subject(_ directory: FilePath, _ name: [UInt8]) -> (directory: FilePath, name: [UInt8])? {
        guard name == [UInt8(ascii: ".")] else { return (directory, name) }
        guard let own = directory.lastComponent else { return nil }
        return (directory.removingLastComponent(), FilePath(root: nil, [own]).bytes)
    }
}
