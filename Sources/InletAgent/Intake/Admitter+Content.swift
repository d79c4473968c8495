internal import InletCore
internal import InletLinux
internal import InletMedia
internal import SystemPackage

/// What files are by their content, where a route asks.
extension Admitter {
    /// What must be known of a file before it is known which route takes it: nothing, nearly always.
    func firstFacts(of arrival: Arrival, at path: RootedPath, _ hashing: Hashing) async throws -> Facts {
        var facts = Facts()
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        // Nothing is made of a file that will be refused.
        if candidates.contains(where: {
            !$0.match.mediaTypes.isEmpty || !$0.derive.isEmpty && !$0.validate.mediaTypes.isEmpty
        }) {
            facts.mediaType = try await Self.mediaType(path, hashing.pool)
        }
        return facts
    }

    /// A file of which nobody can tell what it is now is looked at again later: without libmagic no route may be guessed.
    static func mediaType(_ path: RootedPath, _ pool: BlockingPool) async throws -> String {
        try await pool.run { () throws in try ContentType.read(from: try SourceFile(opening: path)) }
    }
}
