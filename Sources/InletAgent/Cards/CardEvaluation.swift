internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Finds out how a card stands, from the card, the journal and the destinations. Blocks, and decides nothing.
struct CardEvaluation {
    let card: Card
    let shared: Shared
    let pool: BlockingPool
    let roots: [FilePath: Card.Root]
    let insertion: InsertionRow
    let rules: CardRules
    var facts = CardFacts()
    var places: [String: CardPlace] = [:]
    var others: [OtherFiles.Reason: OtherFiles] = [:]
    /// Files in each watched folder that the journal does not know.
    var unknown: [FilePath: InventorySum] = [:]
    /// The disks of each destination; a service is a disk of its own.
    var disks: [String: Set<String>] = [:]
    let physical: PhysicalDisks
    var copyCounts: [Set<String>: Int] = [:]
    /// Errors and slow reads of this look at the card.
    var (readFaults, slowReads) = (0, 0)
    var missing: [Int64: Set<Int64>] = [:]
    /// The files in its watched folders.
    var content: [(path: FilePath, size: Int64)] = []
    /// Changes when files come or go.
    var fingerprint: UInt64?
    /// Whether a watched folder on it has no watcher yet.
    var isComing = false
    /// The checksums of everything on the card, and of the other files.
    var inventory = ""
    var othersDigest = ""
    /// The checksum of the content whose second read was right just now.
    var checked: String?
    var silent: [String: String] = [:]
    /// Whether a destination may answer otherwise later, by itself.
    var asksAgain = false
    /// The files to read a second time.
    var secondRead: SecondRead
    /// The lists of stores, by destination.
    var listed: [String: ListedKeys] = [:]

    /// More files are not counted: such a disk is no card.
    static let mostFiles = 500_000
    static let mostMissing = 10_000
    static let group = 256
    static let questions = 16
    /// As many names tell the camera.
    static let mostPaths = 500

    init(_ card: Card, _ shared: Shared, _ pool: BlockingPool) throws(SystemError) {
        (self.card, self.shared, self.pool) = (card, shared, pool)
        physical = try PhysicalDisks.current()
        let state = card.state.withLock(\.self)
        (roots, insertion) = (state.roots, state.insertion)
        rules = card.cardRules
        (facts.isPulled, facts.isOut, facts.isUnknown) = (state.isPulled, state.isOut, state.roots.isEmpty)
        secondRead = SecondRead(rules.secondRead)
        (facts.readErrors, facts.copies) = (state.insertion.card.errors, rules.copies)
    }

    /// - Parameter progress: called with what is known so far, and the checksum of everything on the card.
    mutating func run(_ progress: (CardFacts, String) -> Void) async throws -> CardFacts {
        // Its list stays as it was before the eject.
        if facts.isOut { return card.state.withLock(\.facts) }
        if facts.isUnknown {
            try list()
            try checkMount()
            facts.stage = .known
            return facts
        }
        guard try await isQuiet(), !facts.isPulled else { return try unfinished() }
        facts.stage = .asking
        try checkMount()
        secondRead.takeLists(SourceManifest.all(on: card.mount))
        let files = try list()
        try checkMount()
        if isComing {
            facts.stage = .listing
            return facts
        }
        progress(facts, inventory)
        try await classify(files, progress)
        guard areLookedAt() else { return facts }
        try await checkSource(progress)
        facts.suspects = card.state.withLock { $0.suspects?.inventory == inventory ? $0.suspects?.found : nil } ?? []
        facts.stage = .known
        return facts
    }

    /// After an unmount, another folder at its place must not pass for its content.
    func checkMount() throws(SystemError) {
        if card.isMounted { return }
        throw SystemError(call: "stat", path: card.mount, code: .noSuchFileOrDirectory)
    }

    // MARK: - What is under way

    /// The facts without another look at all of its files.
    mutating func unfinished() throws -> CardFacts {
        let last = card.state.withLock(\.facts)
        if facts.isPulled {
            var facts = last
            (facts.open, facts.openBytes) = (self.facts.open, self.facts.openBytes)
            return facts
        }
        if last.files > 0 {
            (facts.files, facts.bytes, facts.camera) = (last.files, last.bytes, last.camera)
        } else {
            try list()
            fingerprint = nil
        }
        return facts
    }

    /// Whether nothing is under way any more.
    mutating func isQuiet() async throws -> Bool {
        var isQuiet = true
        for root in roots.values {
            let open = try await shared.journal.open(of: root.volume)
            facts.open += open.files
            facts.openBytes += open.bytes
            facts.unread += (root.state?.unread ?? 0) + open.forbidden
            facts.unmarked += root.state?.unmarked ?? 0
            if root.state?.awaitsLabels == true { facts.awaitsLabels = true }
            if root.state?.isWhole != true { isQuiet = false }
            guard isQuiet else { continue }
            isQuiet = try await shared.journal.mayLeave(
                root.volume, proofs: rules.copies ?? root.settings.volumeDoneAfter)
        }
        facts.isTakenIn = roots.values.allSatisfy { $0.state?.isWhole == true }
        facts.stage = facts.open > 0 || facts.isTakenIn ? .copying : .listing
        // Files may still be on their way where enough destinations have them: each is judged by itself.
        if isQuiet { (facts.open, facts.openBytes) = (0, 0) }
        return isQuiet
    }

    // MARK: - What is on it

    /// With its path below the watched folder.
    typealias Found = (path: FilePath, file: VolumeInventory.File)

    var rootPaths: [FilePath] { Array(roots.keys) }

    func beat() { for root in roots.keys { shared.health.heartbeat.beat(.intake(root)) } }

    /// Its watched folders, below the card's top, after the folders where their delivered files are moved: these keep
    /// their paths there (`on_success: archive`).
    private var folders: [(path: FilePath, below: FilePath)] {
        let archives = roots.compactMap { root, entry -> (path: FilePath, below: FilePath)? in
            let folder = FinishFolders(root: root.resolved, settings: entry.settings).archive
            return folder.isWithin(card.mount) ? (root, below(folder)) : nil
        }
        return archives + roots.keys.map { ($0, below($0.resolved)) }
    }

    /// Below the card's top.
    func below(_ folder: FilePath) -> FilePath {
        FilePath(root: nil, folder.components.dropFirst(card.mount.components.count))
    }

    /// Whether nobody would miss it: operating systems and Inlet wrote it. Inlet's own folder is at the top of a watched
    /// folder.
    private static func isOfSystem(_ file: VolumeInventory.File) -> Bool {
        guard let name = file.path.lastComponent else { return false }
        let isLock = name == "lock" && file.path.components.dropLast().last == WatchLock.folder.lastComponent
        return file.kind == .regular && (isLock || IgnoreList.isSystemFile(name: name.string.utf8))
    }

    @discardableResult
    mutating func list() throws -> [FilePath: [Found]] {
        var found: [FilePath: [Found]] = [:]
        var outside = InventorySum()
        let folders = self.folders
        let tolerance = FileSystemKind.known(of: card.mount)?.modifiedTolerance ?? 0
        // Before they are counted: what comes later is noticed. Without it, only such changes stay unseen.
        fingerprint = try? FreeSpace.fingerprint(card.mount)
        let patterns = shared.settings.watch.compactMap(\.pattern)
        var paths: [FilePath] = []
        let seen = try VolumeInventory.walk(around: card.mount, limit: Self.mostFiles, beat: beat) { file in
            if Self.isOfSystem(file) {
                secondRead.passes(file.path)
                return facts.systemFiles += 1
            }
            facts.files += 1
            facts.bytes += file.size
            if paths.count < Self.mostPaths { paths.append(file.path) }
            let root = folders.first { file.path.starts(with: $0.below) }
            if let root, file.kind == .regular {
                let path = FilePath(root: nil, file.path.components.dropFirst(root.below.components.count))
                return found[root.path, default: []].append((path, file))
            }
            secondRead.passes(file.path)
            if root == nil, patterns.contains(where: { $0.root(of: card.mount.pushing(file.path)) != nil }) {
                isComing = true
            }
            outside.add(file.path, file.identity, tolerance: tolerance)
            add(file, root == nil ? .outside : .irregular)
        }
        facts.camera = CameraStructure(listing: paths)?.system
        content = found.flatMap { root, files in files.map { ($0.file.path, $0.file.size) } }
        noteUnseen(seen)
        (inventory, othersDigest) = (seen.digest ?? "", outside.text)
        return found
    }

    private mutating func noteUnseen(_ seen: VolumeInventory) {
        // Where only a part of the card is mounted, the rest of it is unknown.
        facts.isWhole = !seen.isCut && seen.folder == "/"
        // Those in a watched folder may be its watcher's, too.
        let outer = seen.unreadable.count { one in
            !folders.contains { one.path.starts(with: $0.below) }
        }
        facts.hasClosedLostFound = seen.hasClosedLostFound
        facts.unread = max(facts.unread + outer, seen.unreadableCount)
    }

    mutating func add(_ file: VolumeInventory.File, _ reason: OtherFiles.Reason) {
        others[reason, default: OtherFiles(reason: reason)].add(
            size: file.size, folder: file.path.removingLastComponent().display)
    }
}
