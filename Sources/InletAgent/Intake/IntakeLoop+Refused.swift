internal import InletCore
internal import InletLinux
internal import SystemPackage

/// What is not taken as it is.
struct LeftAlone: Sendable {
    /// Files that wait for another of their names to go, by their watches.
    var links: [Int32: Set<FilePath>] = [:]
    /// Mounts of the kernel's own file systems that were said.
    var mounts: Set<FilePath> = []
}

/// Files that the root's rule leaves out, until they change.
extension IntakeLoop {
    /// Files that are watched one by one; the next listing looks at the others again.
    private static let mostLinked = 1000

    /// Says what was left out, once a listing that runs has ended, and has the kernel tell when a file loses a name.
    mutating func followRefused() {
        for path in admission.inspector.refused.takeLinked() where leftAlone.links.count < Self.mostLinked {
            follow(linked: path)
        }
        guard scan.isIdle else { return }
        for news in admission.inspector.refused.takeNews() {
            log.emit(
                .fileIgnored(path: settings.path.pushing(news.path), reason: news.refusal.reason(files: news.files)))
        }
    }

    private mutating func follow(linked path: FilePath) {
        do throws(SystemError) {
            let (folder, name) = try RootedPath(settings.path, path).parent()
            let watch = try inotify.add(file: name, in: folder)
            leftAlone.links[watch, default: []].insert(path)
            // It may have lost its other names before it was watched.
            if try folder.look(name).refusal(by: settings.sources) != .links { lookAgain(watch) }
        } catch {
            // The next listing looks at it again.
        }
    }

    /// A record of a watch that no folder has.
    mutating func handleLinked(_ record: InotifyRecord) {
        if record.mask.contains(.watchRemoved) {
            leftAlone.links[record.watch] = nil
        } else if leftAlone.links[record.watch] != nil {
            lookAgain(record.watch)
        }
    }

    /// What is still left out then is watched anew.
    private mutating func lookAgain(_ watch: Int32) {
        inotify.remove(watch)
        for path in leftAlone.links.removeValue(forKey: watch) ?? [] { lookNow(path) }
    }
}
