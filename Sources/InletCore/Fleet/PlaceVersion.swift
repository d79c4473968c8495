package import SystemPackage

/// A version of a file in a share, as all agents that watch it name it: the same path, size and mtime have one name.
package struct PlaceVersion: Sendable, Hashable {
    /// 16 bytes of the SHA-256 of the path below the share, as a UUID.
    package var path: String
    /// The same of size and mtime.
    package var version: String

    package init(path: String, version: String) { (self.path, self.version) = (path, version) }

    /// - Parameters:
    ///   - path: below the share.
    ///   - modified: in nanoseconds since 1970. 100 ns is the finest time that NFS and SMB both show.
    package init(of path: FilePath, size: Int64, modified: Int64) {
        self.path = Self.uuid(path.bytes)
        version = Self.uuid("\(size) \(modified / 100)".utf8)
    }

    /// The number by which the fleet tells deliveries apart: the same for all agents, and never negative.
    ///
    /// - Parameters:
    ///   - place: the marker of the share.
    ///   - address: of the destination.
    package func ref(in place: String, to address: String) -> Int64 {
        let hash = SHA256.bytes(of: "\(place)\n\(path)\n\(version)\n\(address)".utf8)
        return hash.prefix(8).reduce(0) { $0 << 8 | Int64($1) } & .max
    }

    private static func uuid(_ bytes: some Sequence<UInt8>) -> String {
        let hex = Array(SHA256.bytes(of: bytes).prefix(16)).hex
        let ends = [0, 8, 12, 16, 20, 32]
        return zip(ends, ends.dropFirst()).map { hex.dropFirst($0).prefix($1 - $0) }.joined(separator: "-")
    }
}
