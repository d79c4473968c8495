internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// The second look at a card's own files: the checksum lists that came with it, and the files that are read once more
/// (`source_check`). A list takes the place of the second read.
struct SecondRead: Sendable {
    typealias File = (
        place: RootedPath, known: FileIdentity, tolerance: Int64, digests: [Digest], contents: [ContentHash]
    )

    private let rule: CardRules.SecondRead
    /// The entries of the lists that no file was found for yet, by their paths.
    private var listed: [String: (entry: SourceManifest.Entry, list: String)] = [:]
    /// The files to read because a list has a hash that nobody has computed, and those that the rule wants.
    private var fromList: [File] = []
    private var byRule: [File] = []
    private(set) var differences: [String] = []
    /// Files that a list confirms.
    private(set) var confirmed = 0
    private(set) var list: String?
    /// Lists that could not be used.
    private(set) var faults: [String] = []

    private static let mostDifferences = 100

    init(_ rule: CardRules.SecondRead) { self.rule = rule }

    mutating func takeLists(_ found: (lists: [SourceManifest], faults: [SourceManifest.Fault])) {
        faults = found.faults.map { "\($0.path.display): \($0.reason)" }
        for manifest in found.lists {
            let name = manifest.place.display
            list = list ?? name
            for entry in manifest.entries { listed[entry.path.string] = (entry, name) }
        }
    }

    /// A file that Inlet did not take: its list has nothing to compare.
    mutating func passes(_ path: FilePath) { if !listed.isEmpty { listed[path.string] = nil } }

    /// - Parameters:
    ///   - path: below the card's top, as a list of the camera has it.
    ///   - place: where it lies now.
    mutating func add(_ job: Job, listedAs path: FilePath, at place: RootedPath, _ tolerance: Int64) {
        let contents = job.deliveries.compactMap { $0.proof?.content } + [job.file.content].compactMap(\.self)
        let file: File = (
            place, job.file.identity, tolerance, job.file.digests, contents
        )
        guard !listed.isEmpty, let (entry, list) = listed.removeValue(forKey: path.string) else {
            if rule != .off { byRule.append(file) }
            return
        }
        let known = job.file.digests + contents.filter { $0.partSize == nil }.map(\.digest)
        switch ManifestCheck.judge(entry, size: job.file.identity.size, digests: known) {
        case .same: confirmed += 1
        case .differs(let reason): differ("\(path.display): \(reason) (\(list))")
        case .needsRead:
            var file = file
            file.digests += entry.listed.all
            fromList.append(file)
        }
    }

    mutating func differ(_ text: String) { if differences.count < Self.mostDifferences { differences.append(text) } }

    /// Entries without a file: the card has not all of what its list says.
    mutating func endLists() {
        for (path, entry) in listed.sorted(by: { $0.key < $1.key }) {
            differ("\(DisplayText.escape(path)) is in \(entry.list), and not on the card")
        }
        listed = [:]
    }

    /// - Parameters:
    ///   - seed: chooses the sample.
    ///   - isRuleDone: whether the content was read a second time before.
    func files(seed: String, isRuleDone: Bool) -> [File] {
        if isRuleDone { return fromList }
        guard rule == .sample else { return fromList + byRule }
        let chosen = SourceSample.choose(byRule.map(\.known.size), seed: seed)
        return fromList + chosen.sorted().map { byRule[$0] }
    }
}

extension CardEvaluation {
    /// Compares the card with its own lists, and reads its files a second time, past the cache, where the watched folder
    /// wants that.
    mutating func checkSource(_ progress: (CardFacts, String) -> Void) async throws {
        secondRead.endLists()
        facts.listFaults = secondRead.faults
        // Files that were not copied are not compared either.
        guard facts.open == 0, facts.failed == 0 else { return }
        // With the rule and the number of equal files: a sample is not the whole.
        let content = "\(rules.secondRead.rawValue) \(inventory) "
        let before = insertion.checked.flatMap { $0.hasPrefix(content) ? Int($0.dropFirst(content.utf8.count)) : nil }
        let isRuleDone = !inventory.isEmpty && before != nil
        let files = secondRead.files(seed: card.key + inventory, isRuleDone: isRuleDone)
        var equal = secondRead.confirmed
        if !files.isEmpty { facts.stage = .checking }
        for (index, file) in files.enumerated() {
            facts.source = .running(done: index, of: files.count)
            progress(facts, inventory)
            if await isSame(file) { equal += 1 }
        }
        if !secondRead.differences.isEmpty {
            facts.source = .differs(secondRead.differences)
        } else if rules.secondRead != .off, secondRead.list == nil {
            facts.source = .same(files: before ?? equal)
        } else if let list = secondRead.list {
            facts.source = .listed(files: equal, list: list)
        }
        if secondRead.differences.isEmpty, facts.unchecked == 0, rules.secondRead != .off, !inventory.isEmpty {
            checked = content + "\(before ?? equal)"
        }
    }

    /// Reads one file once more. - Returns: whether it has the known checksums.
    private mutating func isSame(_ file: SecondRead.File) async -> Bool {
        let name = file.place.whole.display
        do throws(SystemError) {
            let read = try await SourceDigests.reread(
                file.place, known: file.known, tolerance: file.tolerance, digests: file.digests,
                contents: file.contents, on: pool, progress: beating)
            if let slowest = read.slowest, slowest < Self.slow { slowReads += 1 }
            switch read.outcome {
            case .same: break
            case .differs(let reason): secondRead.differ("\(name): \(reason)")
            case .nothingToCompare: facts.unchecked += 1
            }
            return read.outcome == .same
        } catch {
            readFaults += 1
            secondRead.differ("\(name): \(error)")
            return false
        }
    }

    /// Below this rate, in bytes per second, a second of reading counts as slow.
    private static let slow: Int64 = 1 << 20

    private var beating: @Sendable () -> Void {
        let (heartbeat, names) = (shared.health.heartbeat, rootPaths)
        return { for root in names { heartbeat.beat(.intake(root)) } }
    }
}
