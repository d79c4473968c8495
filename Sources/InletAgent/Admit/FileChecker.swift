internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Looks at files: whether they are there, whether the rule of the root takes them, whether somebody still writes to them. Files
/// that are left alone are logged once for each folder and extension.
struct FileChecker: Sendable {
    /// What was seen of some paths.
    struct Looks: Sendable {
        /// Those of which no more needs to be known.
        var judged: [(FilePath, AdmissionStage.EvaluationResult)] = []
        var arrivals: [FoundFile] = []
        /// Those of them that the root's rule leaves out, unless the journal knows them.
        var refused: [FilePath: SourceRule.Refusal] = [:]

        var isEmpty: Bool { judged.isEmpty && arrivals.isEmpty }
    }

    let settings: WatchSettings
    /// The file system of the root.
    let volume: Volume?
    private let admission: Admission
    /// With `existing: skip`: files not touched since then are left alone.
    let skipBefore: WallTime?

    private var tally = IgnoreCounts()
    /// What the rule of the root leaves out.
    var refused = RefusedFiles()
    /// Files that could not be looked at since the last listing began.
    var unread = 0
    /// How long looks have taken; the loop resets and reads it.
    var looking = Duration.zero
    /// The folders of the files that are looked at in this turn.
    var turn: FolderCache
    /// What programs are fetching in the folder that was asked about last.
    private var parts: (folder: FilePath, names: [FileName])?

    init(_ settings: WatchSettings, _ volume: Volume?, _ admission: Admission, skipBefore: WallTime?) {
        (self.settings, self.volume, self.admission, self.skipBefore) = (settings, volume, admission, skipBefore)
        turn = FolderCache(settings.path)
    }

    private var root: FilePath { settings.path }
    private var rule: SourceRule { settings.sources }
    private var log: EventLog { admission.log }

    /// Files that were left alone.
    var ignored: Int { tally.total + refused.total }

    /// The quiet time before a first look; nil = the root's.
    func settle(for path: FilePath) -> Duration? { admission.routes.shortestSettle(for: path, root: settings.settle) }

    /// The turn is over: what was seen in it is out of date.
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

    /// What a marker, or a file of labels, is; nil also for one that the root's rule leaves out.
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
    ///   - binding: the quiet time that counts instead of the file's own, and why.
    ///   - mayBeFilled: whether it stands for itself, or for its companions, so that an empty one waits for what it is to hold.
    mutating func probe(
        _ arrival: FoundFile, _ binding: (quiet: Duration, why: String)? = nil, mayBeFilled: Bool = false
    ) -> Settler.Look {
        let writer: LeaseProbe
        let now: FileLook
        do throws(SystemError) {
            let (folder, name) = try turn.parent(of: arrival.path)
            let found = WriterProbe.look(at: name, in: folder)
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
        // Where other machines write, the size may only be an old one.
        if case .unknown = writer { return .later("the file yields more bytes than its size", .seconds(30)) }
        return .notRegular
    }

    /// The quiet time that the route asks for which takes the file as it is.
    private func ownQuiet(_ path: FilePath, _ identity: FileIdentity) -> (quiet: Duration, why: String)? {
        admission.routes.longestSettle(for: path, size: identity.size, root: settings.settle).map {
            ($0, "waiting for its route's settle time")
        }
    }

    // MARK: - Empty files

    /// Before an empty file is looked at again beside which something is being fetched: nothing tells when that is given up.
    private static let partPause = Duration.seconds(5)

    /// Some empty files are complete; others only hold the name of what is still being fetched, and are replaced by it: an empty
    /// one has the longer quiet time, and waits as long as what it is to become is beside it under a name of its own.
    ///
    /// - Parameter quiet: nil = its own quiet time.
    /// - Returns: nil for one that needs to be quiet for no longer than others.
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

    // MARK: - What is said

    /// A file that is not taken: said once for each folder and extension.
    mutating func leaveAlone(_ path: FilePath, _ reason: String) {
        if tally.count(path) { log.emit(.fileIgnored(path: root.pushing(path), reason: reason)) }
    }

    /// A symlink, FIFO, socket or device.
    mutating func noteIrregular(_ path: FilePath) {
        leaveAlone(path, "not a regular file; Inlet never follows symlinks and never reads FIFOs, sockets or devices")
    }

    /// Whether the root's rule leaves the file out, which is noted then.
    mutating func isRefused(_ path: FilePath, _ looks: Looks) -> Bool {
        guard let refusal = looks.refused[path] else { return false }
        refused.note(path, refusal)
        return true
    }

    /// A file of which something could not be found out.
    func failed(_ path: FilePath, _ error: any Error) -> Settler.Look {
        if error.isOfFile { return .failing(why: "\(error)") }
        log.emit(.fileError(path: root.pushing(path), reason: "\(error)"))
        return .later("\(error)", .seconds(5))
    }
}

extension FileChecker {
    /// Names of one folder that are read to find out what is being fetched there.
    private static let mostNames = 100_000
    /// The name, to be shown, under which the file at `path` is being fetched; nil where none is seen. Blocks.
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
            // Without it the longer quiet time counts, as where nothing tells of what is being fetched.
        }
        return parts
    }
}

/// What is looked at again because of ourselves, not because of a writer: nobody is to be told that somebody has it open.
extension Settler.Look {
    /// - Parameter wait: for most, what is in the way is over in a moment.
    static func later(_ why: String, _ wait: Duration = .milliseconds(200)) -> Self { .waiting(for: wait, why: why) }

    /// Its content is to be read, and enough was read in this turn.
    static var comparedLater: Self { later("waiting to be compared with the journal", .milliseconds(50)) }

    static var belongingsUnsettled: Self { later("a file of its set is not complete") }
}
