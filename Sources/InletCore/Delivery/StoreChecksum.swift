/// The checksum that a store was seen to compare and confirm: what `verify: auto` asks of it.
package struct StoreChecksum: Sendable, Equatable {
    /// The cheapest one; MD5 stands for the ETag.
    package var algorithm: Digest.Algorithm
    /// Checksums that the store confirmed although they were wrong: it does not compare them.
    package var uncompared: [Digest.Algorithm]
    package var learnedAt: WallTime

    package init(_ algorithm: Digest.Algorithm, uncompared: [Digest.Algorithm] = [], learnedAt: WallTime) {
        (self.algorithm, self.uncompared, self.learnedAt) = (algorithm, uncompared, learnedAt)
    }

    /// Stores are replaced and updated: after this time Inlet asks again.
    private static let life = Duration.seconds(365 * 86_400)

    /// A time in the future comes from a clock that was wrong.
    package func isValid(at now: WallTime) -> Bool { learnedAt <= now && now - learnedAt < Self.life }
}

/// Keeps what stores were seen to do, by the addresses of destinations (`Destination.address`): the journal.
package protocol StoreChecksumMemory: Sendable {
    /// nil where nothing is known of the address.
    func storeChecksum(at address: String) async throws -> StoreChecksum?
    func keep(_ checksum: StoreChecksum, at address: String) async throws
}
