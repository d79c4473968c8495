internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Listing the tree: at the start, now and then, and whenever events were lost.
extension IntakeLoop {
    /// Lists the whole tree, after the scan that runs: one that starts over again and again would never see the end.
    mutating func requestScan() {
        mustRescan = true
        nextRescan = nil
    }

    mutating func startScan() {
        mustRescan = false
        (unread, admission.inspector.unread) = (0, 0)
        admission.awaited = AwaitedFiles()
        isLimited = false
        refreshModes()
        marks?.directories = 0
        scan.add("")
        nextRescan = settings.rescan.map { .now.advanced(by: $0 * Double.random(in: 0.75...1.25)) }
    }

    /// Watch first, then list: what is created in between shows up in one of the two.
    mutating func enter(_ directory: FilePath) {
        do throws(SystemError) {
            if modes.way(for: directory).way.isPolled {
                try poll(directory, try scan.folder())
            } else {
                try watch(directory, try scan.folder())
                polling.remove(directory)
            }
        } catch {
            if error.isWatchLimit {
                isLimited = true
                do throws(SystemError) {
                    try poll(directory, try scan.folder())
                } catch {
                    if error.isMissing, directory.isEmpty { return loseRoot() }
                    return tell(directory, error)
                }
            } else if error.isMissing {
                if directory.isEmpty { loseRoot() }
                return
            } else if error.isPseudo {
                return passOver(directory, error)
            } else {
                return tell(directory, error)
            }
        }
        if case .trouble(let directory, let error)? = scan.open() { return tell(directory, error) }
        settler.stuckFolders.entered(directory)
    }

    mutating func finishScan() {
        sayLimit()
        guard !isAnnounced else { return }
        isAnnounced = true
        log.emit(
            .watchAdded(
                root: settings.path, directories: directories, writerCheck: WriterCheck.describe(settings.path)))
    }

    /// Nothing is missing for that: it is said once, as what is left alone is.
    private mutating func passOver(_ directory: FilePath, _ error: SystemError) {
        guard leftAlone.mounts.count < Self.mostPassedOver, leftAlone.mounts.insert(directory).inserted else { return }
        log.emit(.fileIgnored(path: settings.path.pushing(directory), reason: "\(error)"))
    }

    private static let mostPassedOver = 1000

    /// A folder that cannot be listed now. One that is there is listed again until it can be, which is said once.
    mutating func tell(_ directory: FilePath, _ error: SystemError) {
        if !error.isMissing {
            unread += 1
            guard settler.stuckFolders.leave(folder: directory, "\(error)", at: .now) else { return }
        }
        log.emit(.fileTrouble(path: settings.path.pushing(directory), reason: "\(error)"))
    }
}
