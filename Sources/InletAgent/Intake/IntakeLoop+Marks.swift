internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Watching with `mode: fanotify`: inotify serves what cannot be marked, and the root itself.
extension IntakeLoop {
    /// Each takes up to 64 KiB of records.
    private static let readsUntilDrained = 64

    mutating func chooseSource() {
        guard settings.mode == .fanotify else { return }
        guard settings.recursive else { return say("", .inotify, MarkCheck.oneFolder) }
        do throws(SystemError) {
            marks = try MarkedMounts(root: settings.path, ignore: ignore)
        } catch {
            say("", .inotify, "fanotify cannot be used: \(error)")
        }
    }

    /// Sees to it that what happens in a folder is told, by fanotify where its file system is marked.
    mutating func watch(_ directory: FilePath, _ folder: Folder) throws(SystemError) {
        if try isMarked(directory, folder) {
            // What becomes of the root itself, and of each mount, is asked of inotify: a mark ends without a word when its
            // file system is unmounted. Without a watch it is noticed at the next listing.
            guard directory.isEmpty || marks?.begins(at: directory) ?? false,
                let watch = try? inotify.add(folder, onlyItself: true)
            else { return }
            return watches.add(watch, directory)
        }
        watches.add(try inotify.add(folder), directory)
    }

    private mutating func isMarked(_ directory: FilePath, _ folder: Folder) throws(SystemError) -> Bool {
        guard let coverage = try marks?.coverage(of: directory, folder) else { return false }
        switch coverage {
        case .newlyMarked: say(directory, .fanotify, "one mark for its file system")
        case .refused(let reason): say(directory, .inotify, "fanotify cannot be used here: \(reason)")
        case .marked, .unmarked, .remote: break
        }
        guard coverage == .marked || coverage == .newlyMarked else { return false }
        marks?.directories += 1
        return true
    }

    /// What marked file systems tell of this root.
    mutating func readMarks() throws(SystemError) {
        guard let news = try marks?.read() else { return }
        for (record, directory) in news { handle(record, in: directory) }
    }

    /// Whether all that was told until now has been read. On a marked file system others may never be quiet: their records are
    /// passed over here.
    var isDrained: Bool {
        mutating get throws(SystemError) {
            guard try inotify.isDrained else { return false }
            for _ in 0..<Self.readsUntilDrained {
                if try marks?.isDrained ?? true { return true }
                let news = try marks?.read() ?? []
                for (record, directory) in news { handle(record, in: directory) }
                if !news.isEmpty { return false }
            }
            return false
        }
    }

    /// Folders that are watched, reported without a watch, or polled.
    var directories: Int {
        mutating get {
            guard let marked = marks?.directories, marked > 0 else { return watches.count + polling.count }
            // The first folder of each mount has a watch besides.
            let own = marks?.beginnings.count { watches.contains($0) } ?? 0
            return marked + max(0, watches.count - own) + polling.count
        }
    }

    private func say(_ directory: FilePath, _ mode: WatchMode, _ reason: String) {
        log.emit(.watchMode(root: settings.path, path: settings.path.pushing(directory), mode: mode, reason: reason))
    }
}
