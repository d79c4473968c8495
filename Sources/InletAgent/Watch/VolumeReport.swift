internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
package import SystemPackage

/// The state of a removable volume's files: of those that are on it now.
package struct VolumeReport: Sendable, Equatable {
    package var root: FilePath
    /// Its label, or UUID.
    package var volume: String
    /// `Volume.key`.
    var key: String
    /// Delivered files, and the sum of their sizes.
    package var files = 0
    package var bytes: Int64 = 0
    /// Those of `files` that count as delivered because they existed before (`existing: adopt`).
    var adopted = 0
    /// When the last of `files` was delivered.
    var deliveredAt: WallTime?
    /// To how many destinations each was to be delivered; nil is all of its route.
    var destinations: Int?
    /// Whether destinations were asked about earlier deliveries, and for how many files they cannot answer.
    var wasAsked = false
    var unasked = 0
    /// Files that were not delivered.
    package var unproved = 0
    /// Files that a destination has lost or changed.
    package var missing = 0
    /// Files that wait for their marker.
    package var unmarked = 0
    /// Unreadable files and folders: their content is unknown.
    package var unread = 0
    /// Files that match no route, and entries that are never read.
    package var ignored = 0
    /// All other files on the volume, inside of the watched folder and outside.
    package var others = 0
    /// Whether there may be more of those: the scan of the volume is not complete.
    var hasMore = false

    init(root: FilePath, volume: Volume) {
        self.root = root
        self.volume = volume.name
        key = volume.key ?? ""
    }

    /// Whether no file that matches a route waits for anything. Other files may be on the volume.
    package var isDone: Bool { unproved == 0 && missing == 0 && unmarked == 0 && unread == 0 }

    /// Counts a file of the journal, by its present state.
    mutating func add(
        _ file: VolumeFile, _ look: Result<FileLook, any Error>, _ earlier: VolumeDeliveryCheck, _ tolerance: Int64
    ) {
        switch look {
        case .failure: unread += 1
        case .success(.missing): break
        case .success where !file.isDelivered: unproved += 1
        case .success(let now):
            // Another file, which was not delivered.
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

    /// Counts the other files on the volume. Blocks.
    mutating func countOthers() {
        let (all, isCut) = Self.count(around: root)
        others = max(0, all - files - unproved - missing - unmarked)
        hasMore = isCut
    }

    /// Equal reports are not sent twice.
    var word: LastWord { (key, "\(files) \(bytes) \(deliveredAt?.milliseconds ?? 0)") }
}

extension VolumeReport {
    /// More files are not counted: it blocks the folder's watcher.
    private static let most = 100_000

    /// How many files the file system around `root` has, by their names, without those of file systems mounted below
    /// it.
    ///
    /// - Returns: also whether folders were unreadable, or there are more files than it counts.
    private static func count(around root: FilePath) -> (files: Int, isCut: Bool) {
        var (files, isCut) = (0, false)
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
                        if seen > most { return (files, true) }
                        if entry.kind == .directory {
                            // The file system's own, which only root may list.
                            if entry.name.string != "lost+found" { waiting.append(path.appending(entry.name)) }
                        } else {
                            files += 1
                        }
                    }
                } catch {
                    if !error.isMissing { isCut = true }
                }
            }
        } catch {
            // Unseen files are reported as such.
            isCut = true
        }
        return (files, isCut)
    }
}

/// When to ask about the state of a removable volume. The answer counts all its files, on the journal's one connection:
/// so not before a change, and at most once a second.
struct VolumeReportTimer {
    static let pause = Duration.seconds(1)

    private var isOpen = true
    private var notBefore: ContinuousClock.Instant?

    /// A file of the volume was seen or admitted, or has ended.
    mutating func reopen() { isOpen = true }

    func isDue(at now: ContinuousClock.Instant) -> Bool { isOpen && notBefore.map { $0 <= now } ?? true }

    /// - Parameter isAnswered: false when the journal did not answer: it is asked again.
    mutating func asked(isAnswered: Bool, at now: ContinuousClock.Instant) {
        isOpen = !isAnswered
        notBefore = now.advanced(by: Self.pause)
    }

    /// The time for a question that came too soon.
    var deadline: ContinuousClock.Instant? { isOpen ? notBefore : nil }
}

/// Removable volumes: whether one is still there, and whether it can be taken out.
extension RootLoop {
    /// Whether a pattern's folder is another one now: its findings must not pass for files of the former volume, so the
    /// root is lost. Checked after files were looked at, and before the journal takes them.
    mutating func losesPassing() -> Bool {
        guard settings.pattern != nil else { return false }
        if !isLost, FolderIdentity(settings.path) != place { loseRoot() }
        return isLost
    }

    /// Reports the volume once, when all its files were seen and have ended, delivered or not, and the destinations
    /// with earlier files of it were asked.
    mutating func reportVolume() async {
        do {
            try await endFirstListing()
            guard let found = stage.volume, let key = found.key, canTellVolume else { return }
            guard try await asksForEarlier(key), volume.question.isDue(at: .now) else { return }
            let mayLeave = try await stage.journal.mayLeave(key, proofs: settings.volumeDoneAfter)
            volume.question.asked(isAnswered: true, at: .now)
            if mayLeave { try tell(try await volumeReport(found, key)) }
        } catch {
            // The journal or the folder's events are unreadable now: other services report that.
            volume.question.asked(isAnswered: false, at: .now)
            volume.earlier.putOff()
        }
    }

    /// When to continue; nil waits for an event.
    var volumeDeadline: ContinuousClock.Instant? {
        canTellVolume ? (volume.earlier.isOver ? volume.question.deadline : volume.earlier.due) : nil
    }

    /// - Returns: whether no destination is left to ask.
    private mutating func asksForEarlier(_ key: String) async throws(JournalError) -> Bool {
        if volume.earlier.isOver { return true }
        guard volume.earlier.due <= .now else { return false }
        shared.health.heartbeat.beat(.intake(settings.path))
        let silence = try await volume.earlier.ask(
            of: key, at: settings.path, stage.tolerance, proofs: settings.volumeDoneAfter, stage.journal)
        if let silence { log.emit(.fileError(path: settings.path, reason: silence)) }
        return volume.earlier.isOver
    }

    private mutating func endFirstListing() async throws(JournalError) {
        guard stage.adopter != nil, listing.isComplete, settler.count == 0,
            let key = stage.volume?.firstListing(stage.tolerance)
        else { return }
        try await stage.journal.setListed(key, at: .now)
        stage.adopter = nil
    }

    /// Whether all files on the volume have been seen, and none is being admitted.
    var canTellVolume: Bool {
        stage.volume?.key != nil && listing.isComplete && settler.count == 0 && units.isEmpty
    }

    /// Checks each file of the journal: it also knows files from before the volume was formatted.
    private mutating func volumeReport(_ found: Volume, _ key: String) async throws(JournalError) -> VolumeReport {
        let (root, earlier) = (settings.path, volume.earlier)
        var end = VolumeReport(root: root, volume: found)
        (end.destinations, end.ignored) = (settings.volumeDoneAfter, stage.checker.ignored)
        (end.wasAsked, end.unasked) = (earlier.askedFiles > 0, earlier.unanswerable)
        end.unread = listing.unread + stage.checker.unread
        var last = FilePath()
        while true {
            shared.health.heartbeat.beat(.intake(root))
            let files = try await stage.journal.files(
                of: key, proofs: settings.volumeDoneAfter, after: last, limit: 256)
            guard let next = files.last else { break }
            last = next.path
            var turn = FolderCache(root)
            for file in files { end.add(file, Result { try turn.look(file.path) }, earlier, stage.tolerance) }
            turn.close()
        }
        // An unreadable file keeps the volume unfinished; a file that was removed meanwhile does not.
        end.unmarked = stage.awaited.count { FileLook.mayBeThere(RootedPath(root, $0)) }
        return end
    }

    private mutating func tell(_ end: VolumeReport) throws(SystemError) {
        // Other files are reported with the rest; a change of their number alone is not news.
        var news = end
        news.ignored = 0
        guard news != volume.said else { return }
        guard try watch.isDrained() else { return volume.question.reopen() }
        volume.said = news
        var end = end
        end.countOthers()
        log.emit(.volumeDone(end))
    }
}

/// Asks destinations whether they still have this volume's earlier files: the journal's record may be old. A few files
/// at a time, because events wait meanwhile; each file once.
struct VolumeDeliveryCheck: Sendable {
    /// Later deliveries need no question.
    private let before: WallTime
    private var check: AdoptionCheck
    private var last = FilePath()
    private(set) var isOver = false
    private(set) var due = ContinuousClock.now
    private(set) var askedFiles = 0
    /// Files that a destination has lost or changed.
    private var missing: Set<FilePath> = []
    /// Files for which no destination can answer.
    private(set) var unanswerable = 0

    /// Questions to destinations at once.
    private static let questions = 16

    init(before: WallTime, _ registry: DestinationRegistry) {
        self.before = before
        check = AdoptionCheck(registry)
    }

    /// Whether a destination reported the file as missing, and it was not sent again since.
    func isMissing(_ file: VolumeFile) -> Bool { file.deliveredAt < before && missing.contains(file.path) }

    /// Asks no destination for a moment.
    mutating func putOff() { due = max(due, .now.advanced(by: VolumeReportTimer.pause)) }

    /// Asks about the next files. - Returns: the message about a silent destination, which is asked again.
    mutating func ask(
        of volume: String, at root: FilePath, _ tolerance: Int64, proofs: Int?, _ journal: Journal
    ) async throws(JournalError) -> String? {
        let files = try await journal.files(of: volume, proofs: proofs, after: last, limit: Self.questions)
        guard let end = files.last else {
            isOver = true
            return nil
        }
        var turn = FolderCache(root)
        let there = files.filter { file in
            guard file.isDelivered, file.deliveredAt < before else { return false }
            // A missing or unreadable file does not count as delivered.
            return turn.file(at: file.path)?.isKnown(as: file.identity, tolerance: tolerance) == true
        }
        turn.close()
        let jobs = try await journal.jobs(there.map(\.id)) { _ in true }.compactMap(\.self)
        let answers = await withTaskGroup(of: (FilePath, AdoptionCheck.Answer).self) { [check] tasks in
            for job in jobs { tasks.addTask { (job.file.path, await Self.ask(job, proofs, check.registry)) } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        for case (_, .silence(let name, let reason)) in answers {
            let isFirst = check.gaveNoAnswer(name, at: .now)
            due = .now.advanced(by: check.silent([name], at: .now)?.wait ?? .zero)
            let why = "'\(name)' did not answer whether it still has this volume's files: \(reason)"
            return isFirst && !Task.isCancelled ? why : nil
        }
        check.answered(Array(Set(jobs.flatMap { $0.deliveries.map(\.destination) })))
        for (path, answer) in answers {
            askedFiles += 1
            switch answer {
            case .missing: missing.insert(path)
            case .cannotTell: unanswerable += 1
            case .there, .silence: break
            }
        }
        (last, due) = (end.path, .now)
        return nil
    }

    /// Whether enough of the destinations that received the file still have it.
    private static func ask(_ job: Job, _ proofs: Int?, _ registry: DestinationRegistry) async -> AdoptionCheck.Answer {
        let brought = job.deliveries.filter { $0.state == .delivered && $0.afterID == nil && $0.closes == nil }
        let wanted = min(proofs ?? brought.count, brought.count)
        var (there, unknown) = (0, 0)
        var silence: AdoptionCheck.Answer?
        for delivery in brought where there < wanted {
            switch await ask(delivery, job.file.digests, registry[delivery.destination]) {
            case .there: there += 1
            case .cannotTell: unknown += 1
            case .missing: break
            case let answer: silence = answer
            }
        }
        if there >= wanted { return .there }
        let found = "\(there) of \(wanted) destinations have it"
        return there + unknown >= wanted ? .cannotTell(found) : silence ?? .missing(found)
    }

    private static func ask(_ delivery: DeliveryRow, _ digests: [Digest], _ destination: Destination?) async
        -> AdoptionCheck.Answer
    {
        guard let proof = delivery.proof, proof.method != .carried,
            let verifier = destination?.pipeline as? any DeliveryVerifying,
            proof.method != .adopted || verifier.findsByKey
        else { return .cannotTell("the destination cannot be asked for it") }
        if proof.details?["deleted"] != nil { return .missing("it was deleted there") }
        return await AdoptionCheck.ask(verifier, of: VerifyOrder(proof: proof, digests: digests), delivery.destination)
    }
}
