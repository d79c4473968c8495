import InletCore
package import SystemPackage

/// Permissions and owner of a file with credentials, or of the configuration itself, which decides what Inlet runs and
/// where files go; from stat(2).
package struct FileTrust: Sendable {
    /// The user who reads the file. Files of root's group are trusted, because root can read everything anyway.
    package struct Reader: Sendable, Equatable {
        package var user: UInt32
        package var groups: Set<UInt32>

        package init(user: UInt32, groups: Set<UInt32>) {
            self.user = user
            self.groups = groups.union([0])
        }
    }

    package enum Kind: Sendable, CaseIterable {
        /// May be readable by everyone unless it contains a credential.
        case configuration
        /// Contains only a credential.
        case credential
    }

    package var permissions: FilePermissions
    package var owner: UInt32
    package var group: UInt32

    /// Whether users outside our groups can read it. Root may choose any group: Inlet trusts that choice.
    package func isReadableByStrangers(for reader: Reader) -> Bool {
        if permissions.contains(.otherRead) { return true }
        return permissions.contains(.groupRead) && reader.user != 0 && !reader.groups.contains(group)
    }

    /// The objections, each with its remedy, as continuations of the file's name.
    package func objections(to kind: Kind, for reader: Reader) -> [String] {
        var found: [String] = []
        if kind == .credential, isReadableByStrangers(for: reader) {
            found.append(
                permissions.contains(.otherRead)
                    ? "is a credential that everyone can read; chmod 600"
                    : "is a credential that group \(group) can read, which is not a group of ours; chmod 600")
        }
        if !permissions.isDisjoint(with: [.groupWrite, .otherWrite]) {
            let what = kind == .configuration ? ", which decides what Inlet runs and where files go" : ""
            found.append("can be changed by others\(what); chmod go-w")
        }
        if owner != 0, owner != reader.user {
            found.append("belongs to user \(owner), who is neither root nor us; chown it")
        }
        return found
    }
}

extension FileTrust {
    private init(_ stat: Stat) {
        self.init(permissions: stat.permissions, owner: stat.userID.rawValue, group: stat.groupID.rawValue)
    }

    /// The trust of a file that is read later; nil if it does not exist.
    init?(of path: FilePath) {
        // Reading the file later reports why it fails.
        guard let stat = try? path.stat() else { return nil }
        self.init(stat)
    }

    /// Reads a whole file, up to a limit.
    ///
    /// - Throws: an error whose description is the reason.
    static func read(_ path: FilePath, limit: Int) throws -> (bytes: [UInt8], trust: FileTrust) {
        // Non-blocking, because opening a FIFO would wait for its writer.
        let file = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
        return try file.closeAfter {
            let stat = try file.stat()
            guard stat.type != .directory else { throw Errno.isDirectory }
            return (try bytes(of: file, limit: limit), FileTrust(stat))
        }
    }

    private static func bytes(of file: FileDescriptor, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { chunk.deallocate() }
        while true {
            let count = try file.read(into: chunk)
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
            if bytes.count > limit {
                throw PatternError(offset: 0, message: "it is larger than \(ByteText.format(Int64(limit)))")
            }
        }
    }
}
