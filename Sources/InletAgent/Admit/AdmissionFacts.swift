package import InletCore
package import InletLinux
internal import InletMedia
internal import InletPipelines
internal import SystemPackage

/// Reads facts about files (type, date, checksums), and keeps the watchdog informed during long reads.
package struct Hashing: Sendable {
    package let pool: BlockingPool
    /// The loop that waits for a long read.
    var held: (heartbeat: Heartbeat, part: Heartbeat.Part)?
    /// The watched folder, if it is on a card: its names tell the camera of files whose own path does not.
    var cardTop: FilePath?

    /// Called at every chunk, to show that the waiting loop is alive.
    func progress() { if let held { held.heartbeat.beat(held.part) } }

    /// The most bytes to read in one turn of a loop, so that events do not wait for a remounted tree. The last file may
    /// exceed it.
    static let budget: Int64 = 16 << 20

    /// Adds facts that are needed before the route is known; nearly always none.
    package func learnFirst(
        of arrival: FoundFile, by routes: RouteTable, at path: RootedPath, _ facts: inout FileProperties
    ) async throws {
        var wanted: Set<FileProperty> = []
        for route in routes.candidates(for: arrival.path, size: arrival.identity.size) {
            wanted.formUnion(route.match.facts)
            // No file is derived from a file that will be rejected.
            if !route.derive.isEmpty, !route.validate.mediaTypes.isEmpty { wanted.insert(.mediaType) }
        }
        if !wanted.isEmpty { try await learn(wanted, of: path, &facts) }
    }

    /// The plan of `routes` for a file, with every fact that they ask for.
    ///
    /// - Parameter sequence: assigns a number for `{seq}`.
    /// - Returns: `.needs` only for labels of the card that a person must give; nothing more was read then.
    func decide(
        _ arrival: FoundFile, by routes: RouteTable, at place: RootedPath, _ facts: inout FileProperties,
        sequence: () async throws -> Int64
    ) async throws -> RoutingResult {
        while true {
            let decision = routes.plan(arrival, facts: facts, at: .now)
            guard case .needs(let wanted) = decision else { return decision }
            if facts.card != nil, wanted.contains(where: { $0.label != nil }) { return decision }
            if facts.missing(of: wanted).contains(.sequence) { facts.sequence = try await sequence() }
            try await learn(wanted, of: place, &facts)
        }
    }

    /// Adds those of `wanted` that the file itself provides.
    package func learn(_ wanted: Set<FileProperty>, of path: RootedPath, _ facts: inout FileProperties) async throws {
        let missing = facts.missing(of: wanted)
        if missing.contains(.mediaType) { facts.mediaType = try await mediaType(path) }
        if missing.contains(.captured) { facts.captured = try await captured(path) }
        if missing.contains(.camera) { facts.camera = try await camera(path) }
        // Nobody has labelled a file that is on no watched card.
        if facts.card == nil, missing.contains(where: { $0.label != nil }) { facts.card = CardLabels() }
        let algorithms = Set(missing.compactMap(\.algorithm))
        if algorithms.isEmpty { return }
        facts.add(
            try await SourceDigests.digests(
                algorithms, of: try SourceFile(opening: path), on: pool, progress: progress))
    }

    /// A file of unknown type is checked again later: without libmagic its route must not be guessed.
    private func mediaType(_ path: RootedPath) async throws -> String {
        try await pool.run { () throws in try ContentType.read(from: try SourceFile(opening: path)) }
    }

    /// An unreadable file is checked again later: its key is made once, and must not contain the mtime because a disk
    /// was slow to wake.
    private func captured(_ path: RootedPath) async throws -> Captured {
        try await pool.run { () throws(SystemError) in
            Captured(try CaptureDate.read(from: try SourceFile(opening: path)))
        }
    }

    /// As for the date: an unreadable file is checked again later.
    private func camera(_ path: RootedPath) async throws -> Camera {
        try await pool.run { [cardTop] () throws(SystemError) in try CameraFinder.camera(of: path, cardTop: cardTop) }
    }
}

extension Hashing {
    package init(pool: BlockingPool) { self.init(pool: pool, held: nil, cardTop: nil) }
}

extension FoundFile {
    /// A note about another file with the same name in another Unicode normal form; nil for nearly all files. Free for
    /// ASCII names; otherwise it blocks for a look at the folder.
    var normalizationConflict: String? {
        let spellings = FileName(path).otherSpellings
        if spellings.isEmpty { return nil }
        let folder = path.removingLastComponent()
        for spelling in spellings {
            // An unreadable file is reported when its own turn comes.
            let twin = FileLook.file(at: RootedPath(root, folder.pushing(FilePath(bytes: spelling))))
            // A file system that folds normal forms shows one file under both.
            guard let twin, twin.inode != identity.inode || twin.device != identity.device else { continue }
            return
                "another file has the same name in another Unicode normal form; keys use NFC, so the later of the two "
                + "may get '_2'"
        }
        return nil
    }
}

extension Error {
    /// Whether the error is about the file, not about the journal or a destination.
    var isOfFile: Bool { self is SystemError || self is DeliveryError }
}
