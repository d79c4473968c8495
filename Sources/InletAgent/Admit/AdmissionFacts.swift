package import InletCore
package import InletLinux
internal import InletMedia
internal import InletPipelines
internal import SystemPackage

/// Where files are read for what must be known of them (their type, date and checksums), and who is told that this goes on.
package struct Hashing: Sendable {
    package let pool: BlockingPool
    /// The loop that a long read holds up.
    var held: (heartbeat: Heartbeat, part: Heartbeat.Part)?

    /// Called at every chunk: a loop that a long read holds up is alive.
    func progress() { if let held { held.heartbeat.beat(held.part) } }

    /// Bytes that are read in one turn of a loop, so that events do not wait for a tree that was remounted; the last file may
    /// exceed it.
    static let budget: Int64 = 16 << 20

    /// Adds what must be known of a file before it is known which route takes it: nothing, nearly always.
    package func learnFirst(
        of arrival: FoundFile, by routes: RouteTable, at path: RootedPath, _ facts: inout FileProperties
    ) async throws {
        if facts.mediaType != nil { return }
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        // Nothing is made of a file that will be refused.
        if candidates.contains(where: {
            !$0.match.mediaTypes.isEmpty || !$0.derive.isEmpty && !$0.validate.mediaTypes.isEmpty
        }) {
            facts.mediaType = try await mediaType(path)
        }
    }

    /// What `routes` say of a file, with every fact that they ask for.
    ///
    /// - Parameter sequence: gives a number for `{seq}`.
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

    /// Adds those of `wanted` that the file itself tells.
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

    /// A file of which nobody can tell what it is now is looked at again later: without libmagic no route may be guessed.
    private func mediaType(_ path: RootedPath) async throws -> String {
        try await pool.run { () throws in try ContentType.read(from: try SourceFile(opening: path)) }
    }

    /// A file that cannot be read now is looked at again later: a key is made once, and must not hold the mtime because
    /// a disk was slow to wake.
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
    /// What a person should know of a file beside which there is one whose name nobody can tell from its own: the same text in
    /// another Unicode normal form. nil for nearly all, which costs nothing for ASCII names; blocks for a look at the folder
    /// otherwise.
    var normalizationConflict: String? {
        let spellings = FileName(path).otherSpellings
        if spellings.isEmpty { return nil }
        let folder = path.removingLastComponent()
        for spelling in spellings {
            // What cannot be looked at is told when its own turn comes.
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
    /// Whether it is about the file, not about the journal or a destination.
    var isOfFile: Bool { self is SystemError || self is DeliveryError }
}
