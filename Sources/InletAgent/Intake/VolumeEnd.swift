internal import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// What became of the files of a removable volume: of those that are on it, as they are now.
package struct VolumeEnd: Sendable, Equatable {
    package var root: FilePath
    /// Its label, or UUID.
    package var volume: String
    /// `Volume.key`.
    var key: String
    /// Files that were delivered, and their sizes together.
    package var files = 0
    package var bytes: Int64 = 0
    /// Those of `files` that count as delivered because they were there before (`existing: adopt`).
    var adopted = 0
    /// When the last of `files` came to its destinations.
    var deliveredAt: WallTime?
    /// To how many destinations each was to be delivered; nil = to all of its route.
    var destinations: Int?
    /// Whether destinations were asked for what they had before, and of how many files they cannot tell.
    var wasAsked = false
    var unasked = 0
    /// Files that were not delivered.
    package var unproved = 0
    /// Files that a destination does not have any more, or not as they were.
    package var missing = 0
    /// Files that wait for their marker.
    package var unmarked = 0
    /// Files and folders that could not be looked at: what they hold is not known.
    package var unread = 0
    /// Files that no route takes, and what is never read.
    package var ignored = 0
    /// All other files on the volume, inside of the watched folder and outside.
    package var others = 0
    /// Whether there may be more of those: not all of the volume was looked at.
    var hasMore = false

    init(root: FilePath, volume: Volume) {
        self.root = root
        self.volume = volume.name
        key = volume.key ?? ""
    }

    /// Whether nothing that routes take waits for anything. It does not say that nothing else is on the volume.
    package var isDone: Bool { unproved == 0 && missing == 0 && unmarked == 0 && unread == 0 }

    /// Counts a file that the journal knows, by what is there now.
    mutating func add(
        _ file: VolumeFile, _ look: Result<FileLook, any Error>, _ earlier: EarlierFiles, _ tolerance: Int64
    ) {
        switch look {
        case .failure: unread += 1
        case .success(.missing): break
        case .success where !file.isDelivered: unproved += 1
        case .success(let now):
            // Another file, which nobody has delivered.
            guard now.identity?.isKnown(as: file.identity, tolerance: tolerance) == true else { return }
            if earlier.isMissing(file) {
                missing += 1
                return
            }
            files += 1
            bytes += file.identity.size
            if file.isAdopted { adopted += 1 }
            deliveredAt = max(deliveredAt ?? file.deliveredAt, file.deliveredAt)
        }
    }

    mutating func countOthers(_ all: WholeVolume.Count) {
        others = max(0, all.files - files - unproved - missing - unmarked)
        hasMore = all.isCut
    }

    /// What is not said twice.
    var word: LastWord { LastWord(of: key, "\(files) \(bytes) \(deliveredAt?.milliseconds ?? 0)") }
}

/// All files of a file system, by their names.
enum WholeVolume {
    struct Count: Equatable {
        var files = 0
        /// Folders that could not be listed, or more files than are counted.
        var isCut = false
    }

    /// More are not counted: it blocks whoever watches the folder.
    private static let most = 100_000

    /// Counts the files of the file system that is mounted around `root`, but not those of others below it. Blocks.
    static func count(around root: FilePath, most: Int = most) -> Count {
        var count = Count()
        do {
            let real = root.resolved
            let top = try Folder(MountTable.current().mount(of: real)?.point ?? real)
            let device = try top.identity().device
            var (waiting, seen): ([FilePath], Int) = ([""], 0)
            while let path = waiting.popLast() {
                do throws(SystemError) {
                    let folder = try top.folder(path)
                    if try folder.identity().device != device { continue }
                    var names = try folder.list()
                    while let entry = try names.next() {
                        seen += 1
                        if seen > most {
                            count.isCut = true
                            return count
                        }
                        if entry.kind == .directory {
                            // The file system's own, which only root may list.
                            if entry.name.string != "lost+found" { waiting.append(path.appending(entry.name)) }
                        } else {
                            count.files += 1
                        }
                    }
                } catch {
                    if !error.isMissing { count.isCut = true }
                }
            }
        } catch {
            // What is not seen is said not to be.
            count.isCut = true
        }
        return count
    }
}
