internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Derives files from originals as routes ask (`derive:`): one after the other for a root, outside the loop that
/// watches it. An original waits for its derived files. A failure is logged, and the original goes without that file.
final class Deriver: Sendable {
    private struct State: Sendable {
        /// The derived files of each original; nil while a program runs.
        var entries: [FilePath: (identity: FileIdentity, made: [FoundCompanion]?)] = [:]
        private var queue: [(arrival: FoundFile, rules: [DeriveRule])] = []

        mutating func ask(_ arrival: FoundFile, _ rules: [DeriveRule]) {
            entries[arrival.path] = (arrival.identity, nil)
            queue.append((arrival, rules))
        }

        /// The oldest request that an original still waits for. Each costs a run of a program; moving up the rest is
        /// cheap.
        mutating func take() -> (arrival: FoundFile, rules: [DeriveRule])? {
            let place = queue.firstIndex { awaits($0.arrival) }
            defer { queue.removeFirst(place.map { $0 + 1 } ?? queue.count) }
            return place.map { queue[$0] }
        }

        func awaits(_ arrival: FoundFile) -> Bool {
            entries[arrival.path].map { $0.identity == arrival.identity && $0.made == nil } ?? false
        }
    }

    /// Derived files stay here until they are delivered.
    let folder: FilePath
    /// The root's mailbox, whose loop learns when files are derived, or cannot be.
    private let mailbox: RootMailbox
    private let shared: Shared
    private let pool = BlockingPool(name: "derive", threads: 1)
    private let signal = WakeSignal()
    private let state = Mutex(State())

    init(_ mailbox: RootMailbox, _ shared: Shared) {
        (self.mailbox, self.shared) = (mailbox, shared)
        folder = Self.folder(in: shared.settings.settings.stateDirectory)
            .appending(DeriveRule.folder(of: mailbox.root))
    }

    /// Where programs run, for all watched folders.
    static func folder(in stateDirectory: FilePath) -> FilePath { stateDirectory.appending("derived") }

    /// The derived files of a file; the first call starts deriving them.
    ///
    /// - Returns: nil while that runs: ask again once the root's mailbox reports it.
    func made(of arrival: FoundFile, _ rules: [DeriveRule]) -> [FoundCompanion]? {
        let (made, stale) = state.withLock { state -> ([FoundCompanion]?, [FoundCompanion]) in
            let known = state.entries[arrival.path]
            if let known, known.identity == arrival.identity { return (known.made, []) }
            state.ask(arrival, rules)
            return (nil, known?.made ?? [])
        }
        remove(stale)
        signal.raise()
        return made
    }

    func isUnderWay(_ arrival: FoundFile) -> Bool { state.withLock { $0.awaits(arrival) } }

    /// The original is in the journal, or never will be: removes all but those in `kept`.
    func close(_ original: FilePath, kept: Set<FilePath>) {
        let made = state.withLock { $0.entries.removeValue(forKey: original)?.made ?? [] }
        remove(made.filter { !kept.contains($0.arrival.path) })
    }

    /// The same for all originals below a folder that is gone.
    func close(below directory: FilePath) {
        let made = state.withLock { state in
            let gone = state.entries.filter { $0.key.isWithin(directory) }
            for path in gone.keys { state.entries[path] = nil }
            return gone.values.flatMap { $0.made ?? [] }
        }
        remove(made)
    }

    private func remove(_ found: [FoundCompanion]) {
        // Leftovers are removed at the next start.
        for one in found { try? DurableFile.remove(folder.pushing(one.arrival.path)) }
    }

    // MARK: - Making

    /// Runs until the task is cancelled.
    func run() async { await withTaskExecutorPreference(pool) { await self.makeAll() } }

    private func makeAll() async {
        await removeLeftovers()
        while !Task.isCancelled {
            guard let request = state.withLock({ $0.take() }) else {
                await signal.wait(until: nil)
                continue
            }
            var made: [FoundCompanion] = []
            for rule in request.rules {
                if let found = await make(rule, of: request.arrival) { made.append(found) }
            }
            if Task.isCancelled { return remove(made) }
            finish(request.arrival, made)
        }
    }

    /// Meanwhile the original may have changed or been given up.
    private func finish(_ arrival: FoundFile, _ made: [FoundCompanion]) {
        let isWanted = state.withLock { state in
            guard state.awaits(arrival) else { return false }
            state.entries[arrival.path]?.made = made
            return true
        }
        if !isWanted { remove(made) }
        mailbox.put { $0.derived.append(arrival.path) }
    }

    private func make(_ rule: DeriveRule, of arrival: FoundFile) async -> FoundCompanion? {
        let path = mailbox.root.pushing(arrival.path)
        let start = ContinuousClock.now
        do {
            let made = try await run(rule, on: arrival)
            Failpoint.derived.reached()
            shared.log.emit(
                .fileDerived(
                    path: path, name: rule.name, size: made.identity.size, duration: start.duration(to: .now)))
            return (
                companion: Companion(path: made.path, kind: .derived, ending: rule.suffix), arrival: made
            )
        } catch {
            if !Task.isCancelled { shared.log.emit(.fileNotDerived(path: path, name: rule.name, reason: "\(error)")) }
            return nil
        }
    }

    /// Removes derived files that an earlier process did not admit, and those that no delivery needs. Files of failed
    /// deliveries stay, for a person to retry.
    private func removeLeftovers() async {
        // A file that cannot be removed now takes room in the state directory until the next start.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? [] {
            // As above; files that the journal cannot answer for now stay.
            try? await removeLeftover(FilePath(name), isWork: name.hasPrefix(Self.workPrefix))
        }
    }

    private func removeLeftover(_ name: FilePath, isWork: Bool) async throws {
        let path = folder.pushing(name)
        if isWork { return try FileManager.default.removeItem(atPath: path.string) }
        let row = try await shared.journal.newest(folder, [name])[0]
        if let row, row.finishedAt == nil || [.failed, .expired].contains(row.state) { return }
        try DurableFile.remove(path)
    }
}

/// Runs programs that derive files.
///
/// The program sees the original under a plain name in a folder of its own, so no file name can pass as an option or a
/// pattern. It runs at low priority; its time and its output are bounded.
extension Deriver {
    private static let niceness: Int32 = 10

    /// Holds one folder per run, in which the program writes.
    private static let workPrefix = ".work"

    private static func number() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// - Returns: the derived file, in `folder` and on the disk.
    private func run(_ rule: DeriveRule, on original: FoundFile) async throws -> FoundFile {
        guard let word = rule.command.first, let program = ProgramFinder.find(word) else {
            throw Refusal("there is no program '\(rule.command.first ?? "")'")
        }
        // A program that outlived an earlier process may still write, but not into this run's folder.
        let work = folder.appending(Self.workPrefix + Self.number())
        try DurableFile.makeDirectories(work, mode: 0o700, asFolderOwner: true)
        // Leftovers are removed at the next start.
        defer { try? FileManager.default.removeItem(atPath: work.string) }
        let (input, output) = (
            work.appending("in" + Self.ending(of: original.path)), work.appending("out" + rule.suffix)
        )
        // The program follows the path itself: it does not start where the path leads elsewhere.
        try requireUnchanged(original)
        try DurableFile.makeLink(input, to: original.place.whole)
        let arguments = [program.string] + rule.arguments(in: input.string, out: output.string).dropFirst()
        var child = ChildProcess(arguments, environment: Self.environment(work), timeout: rule.timeout)
        (child.niceness, child.largestFile) = (Self.niceness, rule.maxSize)
        (child.yieldsMemory, child.leavesNobody) = (true, true)
        let outcome = try await child.run(on: pool)
        if let reason = outcome.failure { throw Refusal(reason) }
        try requireUnchanged(original)
        return try take(output, rule)
    }

    /// Of the original's name only a plain extension: programs rely on it.
    private static func ending(of path: FilePath) -> String {
        let ending = FileName(path).plainExtension
        let isPlain = ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        let isFit = isPlain && !ending.isEmpty && ending.utf8.count <= 16
        return isFit ? "." + ending : ""
    }

    private static func environment(_ work: FilePath) -> [(name: String, value: [UInt8])] {
        [
            ("PATH", Array(ProgramFinder.path.utf8)), ("HOME", work.bytes), ("TMPDIR", work.bytes),
            (ChildVariable.language.rawValue, Array("C.UTF-8".utf8)),
            // libvips (8.13 and later) then opens nothing with loaders that it does not trust: SVG, PDF, ImageMagick's.
            (ChildVariable.blockUntrusted.rawValue, Array("1".utf8)),
        ]
    }

    private func requireUnchanged(_ original: FoundFile) throws {
        guard let now = try FileLook.look(at: original.place).identity, now == original.identity else {
            throw Refusal("the file changed while it was read")
        }
    }

    private func take(_ output: FilePath, _ rule: DeriveRule) throws -> FoundFile {
        guard let size = try FileLook.look(at: output).identity?.size, size > 0 else {
            throw Refusal("the program made no file")
        }
        guard size <= rule.maxSize else {
            throw Refusal("what it made has \(ByteText.format(size)), more than max_size")
        }
        // A unique name, never used again: the journal knows files by their paths.
        let name = FilePath("\(WallTime.now.milliseconds)-\(Self.number())\(rule.suffix)")
        try DurableFile.place(output, at: folder.pushing(name))
        guard let made = try FileLook.look(at: folder.pushing(name)).identity else {
            throw Refusal("the file that was made is gone")
        }
        return FoundFile(root: folder, path: name, identity: made)
    }
}

extension ChildProcess.Outcome {
    /// The program's error output, as the end of a sentence.
    var tail: String {
        let said = DisplayText.escape(errors.suffix(300))
        return said.isEmpty ? "" : ": \(said)"
    }

    /// Why the program failed; nil when it succeeded.
    package var failure: String? {
        switch end {
        case .exited(0): nil
        case .exited(let code): "the program ended with \(code)\(tail)"
        case .signalled(let signal): "the program was ended by signal \(signal)\(tail)"
        case .timedOut: "the program took too long and was ended\(tail)"
        case .stuck: "the program took too long and could not be ended\(tail)"
        case .cancelled: "stopped"
        }
    }
}
