internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Looks at files: whether they are there, whether the root's rule accepts them, whether a program still writes to
/// them. Ignored files are logged once per folder and extension.
struct FileChecker: Sendable {
    /// The results for some paths.
    struct Looks: Sendable {
        /// Paths that need no further look.
        var judged: [(FilePath, AdmissionStage.EvaluationResult)] = []
        var arrivals: [FoundFile] = []
        /// Paths that the root's rule refuses, unless the journal knows them.
        var refused: [FilePath: SourceRule.Refusal] = [:]

        var isEmpty: Bool { judged.isEmpty && arrivals.isEmpty }
    }

    let settings: WatchSettings
    /// The file system of the root.
    let volume: Volume?
    private let admission: Admission
    /// With `existing: skip`: files not touched since then are ignored.
    let skipBefore: WallTime?

    private var tally = IgnoreCounts()
    /// Files that the root's rule refuses.
    var refused = RefusedFiles()
    /// Files that could not be read since the last listing began.
    var unread = 0
    /// How long looks have taken; the loop resets and reads it.
    var looking = Duration.zero
    /// The folders of the files in this turn.
    var turn: FolderCache
    /// Downloads in progress in the folder that was asked about last.
    private var parts: (folder: FilePath, names: [FileName])?

    init(_ settings: WatchSettings, _ volume: Volume?, _ admission: Admission, skipBefore: WallTime?) {
        (self.settings, self.volume, self.admission, self.skipBefore) = (settings, volume, admission, skipBefore)
        turn = FolderCache(settings.path)
    }

    private var root: FilePath { settings.path }
    private var rule: SourceRule { settings.sources }
    private var log: EventLog { admission.log }

    /// Ignored files.
    var ignored: Int { tally.total + refused.total }

    /// The quiet time before a first look; nil is the root's.
    func settle(for path: FilePath) -> Duration? { admission.routes.shortestSettle(for: path, root: settings.settle) }

    /// The turn is over: its results are out of date.
    mutating func endTurn() {
        turn.close()
        parts = nil
    }

    // MARK: - Without opening anything

    /// The first look at paths whose quiet time is over. Of many, each folder is opened once. Blocks.
    mutating func look(_ paths: [FilePath]) -> Looks {
        let begin = ContinuousClock.now
        defer { looking += begin.duration(to: .now) }
        var looks = Looks()
        for path in paths {
            do throws(SystemError) {
                let found = try turn.look(path)
                switch found {
                case .regular(let identity, _, _) where isSkipped(identity):
                    leaveAlone(path, "it existed before this folder was watched (existing: skip)")
                    looks.judged.append((path, .known))
                case .regular(let identity, _, _):
                    if let refusal = found.refusal(by: rule) { looks.refused[path] = refusal }
                    looks.arrivals.append(FoundFile(root: root, path: path, identity: identity, volume: volume))
                case .missing:
                    refused.forget(path)
                    admission.deriver?.close(path, kept: [])
                    looks.judged.append((path, .look(.gone)))
                case .directory, .symlink, .other:
                    noteIrregular(path)
                    looks.judged.append((path, .look(.notRegular)))
                }
            } catch {
                looks.judged.append((path, .look(unlooked(path, error))))
            }
        }
        return looks
    }

    private mutating func unlooked(_ path: FilePath, _ error: SystemError) -> Settler.Look {
        guard volume?.key != nil, !error.isShortage else { return .failing(why: "\(error)") }
        log.emit(.fileError(path: root.pushing(path), reason: "\(error)"))
        // The count keeps the card from being reported as done; the file is seen again when the card comes back.
        unread += 1
        return .notRegular
    }

    func look(at path: FilePath) throws(SystemError) -> FileLook { try FileLook.look(at: RootedPath(root, path)) }

    /// A marker's or a label file's identity; nil also for a file that the root's rule refuses.
    func taken(at path: FilePath) throws(SystemError) -> FileIdentity? {
        let found = try look(at: path)
        return found.refusal(by: rule) == nil ? found.identity : nil
    }

    private func isSkipped(_ identity: FileIdentity) -> Bool {
        guard let skipBefore else { return false }
        return WallTime(nanoseconds: max(identity.modified, identity.changed)) < skipBefore
    }

    // MARK: - Through its own descriptor

    /// The look at a file that is new. Opens it; blocks.
    ///
    /// - Parameters:
    ///   - binding: a quiet time that overrides the file's own, and why.
    ///   - mayBeFilled: whether it stands for itself or for its companions, so that an empty file waits for its
    ///     content.
    mutating func probe(
        _ arrival: FoundFile, _ binding: (quiet: Duration, why: String)? = nil, mayBeFilled: Bool = false
    ) -> Settler.Look {
        let writer: LeaseProbe
        let now: FileLook
        do throws(SystemError) {
            let found = try turn.probe(arrival.path)
            // After the probe: a writer that closed between the first look and the probe has left another file.
            writer = found.writer
            if let file = found.file { now = file } else { now = try look(at: arrival.path) }
        } catch {
            return error.isMissing ? .gone : .failing(why: "\(error)")
        }
        let isBusy = writer == .busy
        if isBusy { log.emit(.fileSettling(path: root.pushing(arrival.path), busy: true)) }
        if case .other = now { return madeUp(arrival.path, writer) }
        if let refusal = now.refusal(by: rule) {
            refused.note(arrival.path, refusal)
            return .notRegular
        }
        let identity = now.identity ?? arrival.identity
        let binding = binding ?? ownQuiet(arrival.path, identity)
        if mayBeFilled, identity.size == 0, !isBusy, let look = empty(arrival.path, identity, binding?.quiet) {
            return look
        }
        return .file(identity, busy: isBusy, quiet: binding?.quiet, why: binding?.why)
    }

    private mutating func madeUp(_ path: FilePath, _ writer: LeaseProbe) -> Settler.Look {
        leaveAlone(
            path,
            "put a copy here: the file yields more bytes than its size, as in /proc and on some FUSE file systems, "
                + "so its end is unknown")
        // Where other machines write, the size may be out of date.
        if case .unknown = writer { return .later("the file yields more bytes than its size", .seconds(30)) }
        return .notRegular
    }

    /// The quiet time of the route that accepts the file in its present state.
    private func ownQuiet(_ path: FilePath, _ identity: FileIdentity) -> (quiet: Duration, why: String)? {
        admission.routes.longestSettle(for: path, size: identity.size, root: settings.settle).map {
            ($0, "waiting for its route's settle time")
        }
    }

    // MARK: - Empty files

    /// Before an empty file next to a download is looked at again: no event reports that the download was given up.
    private static let partPause = Duration.seconds(5)

    /// Some empty files are complete; others are placeholders of a download, which replaces them. An empty file
    /// therefore has the longer quiet time, and waits while a download beside it has a name of its own.
    ///
    /// - Parameter quiet: nil is its own quiet time.
    /// - Returns: nil for a file that needs no longer quiet time than others.
    private mutating func empty(_ path: FilePath, _ identity: FileIdentity, _ quiet: Duration?) -> Settler.Look? {
        guard settings.settleEmpty > .zero else { return nil }
        if let part = part(of: path) {
            return .waiting(
                for: Self.partPause, why: "empty, and \(part) is beside it: waiting until that one is complete")
        }
        if quiet ?? settle(for: path) ?? settings.settle >= settings.settleEmpty { return nil }
        let why = "empty: it may be a placeholder for a file that is being copied (settle_empty)"
        return .file(identity, busy: false, quiet: settings.settleEmpty, why: why)
    }

    // MARK: - Ignored and failed files

    /// Ignores a file, and logs it once per folder and extension.
    mutating func leaveAlone(_ path: FilePath, _ reason: String) {
        if tally.count(path) { log.emit(.fileIgnored(path: root.pushing(path), reason: reason)) }
    }

    /// A symlink, FIFO, socket or device.
    mutating func noteIrregular(_ path: FilePath) {
        leaveAlone(path, "not a regular file; Inlet never follows symlinks and never reads FIFOs, sockets or devices")
    }

    /// Whether the root's rule refuses the file, which is then counted.
    mutating func isRefused(_ path: FilePath, _ looks: Looks) -> Bool {
        guard let refusal = looks.refused[path] else { return false }
        refused.note(path, refusal)
        return true
    }

    /// A file that could not be checked.
    func failed(_ path: FilePath, _ error: any Error) -> Settler.Look {
        if error.isOfFile { return .failing(why: "\(error)") }
        log.emit(.fileError(path: root.pushing(path), reason: "\(error)"))
        return .later("\(error)", .seconds(5))
    }
}

extension FileChecker {
    /// The most names of a folder to read in search of a download.
    private static let mostNames = 100_000
    /// The name, for display, of a download of the file at `path`; nil without one. Blocks.
    private mutating func part(of path: FilePath) -> String? {
        let folder = path.removingLastComponent()
        if parts?.folder != folder { parts = (folder, partNames(in: folder)) }
        let name = FileName(path)
        return parts?.names.first { $0.isPart(of: name) }.map { DisplayText.escape($0.bytes) }
    }
    private mutating func partNames(in folder: FilePath) -> [FileName] {
        var parts: [FileName] = []
        do throws(SystemError) {
            var names = try turn.folder(folder).list()
            var room = Self.mostNames
            while room > 0, let entry = try names.next() {
                room -= 1
                let name = FileName(bytes: entry.name.bytes)
                if name.isOfPart { parts.append(name) }
            }
        } catch {
            // Without an answer the longer quiet time applies, as where downloads leave no trace.
        }
        return parts
    }
}

/// Checked again because of the agent itself, not because of a writer: no writer is reported.
extension Settler.Look {
    /// - Parameter wait: short, because most such causes pass in a moment.
    static func later(_ why: String, _ wait: Duration = .milliseconds(200)) -> Self { .waiting(for: wait, why: why) }

    /// Its content must be read, and this turn has read enough.
    static var comparedLater: Self { later("waiting to be compared with the journal", .milliseconds(50)) }

    static var belongingsUnsettled: Self { later("a file of its set is not complete") }
}
