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

    /// Called at every chunk, to show that the waiting loop is alive.
    func progress() { if let held { held.heartbeat.beat(held.part) } }

    /// The most bytes to read in one turn of a loop, so that events do not wait for a remounted tree. The last file may
    /// exceed it.
    static let budget: Int64 = 16 << 20

    /// Adds facts that are needed before the route is known; nearly always none.
    package func learnFirst(
        of arrival: FoundFile, by routes: RouteTable, at path: RootedPath, _ facts: inout FileProperties
    ) async throws {
        if facts.mediaType != nil { return }
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        // No file is derived from a file that will be rejected.
        if candidates.contains(where: {
            !$0.match.mediaTypes.isEmpty || !$0.derive.isEmpty && !$0.validate.mediaTypes.isEmpty
        }) {
            facts.mediaType = try await mediaType(path)
        }
    }

    /// The plan of `routes` for a file, with every fact that they ask for.
    ///
    /// - Parameter sequence: assigns a number for `{seq}`.
    func decide(
        _ arrival: FoundFile, by routes: RouteTable, at place: RootedPath, _ facts: inout FileProperties,
        sequence: () async throws -> Int64
    ) async throws -> RoutingResult {
        while true {
            let decision = routes.plan(arrival, facts: facts, at: .now)
            guard case .needs(let wanted) = decision else { return decision }
            if facts.missing(of: wanted).contains(.sequence) { facts.sequence = try await sequence() }
            try await learn(wanted, of: place, &facts)
        }
    }

    /// Adds those of `wanted` that the file itself provides.
    package func learn(_ wanted: Set<FileProperty>, of path: RootedPath, _ facts: inout FileProperties) async throws {
        let missing = facts.missing(of: wanted)
        if missing.contains(.mediaType) { facts.mediaType = try await mediaType(path) }
        if missing.contains(.captured) { facts.captured = try await captured(path) }
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
}

extension Hashing {
    package init(pool: BlockingPool) { self.init(pool: pool, held: nil) }
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
