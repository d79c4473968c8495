import InletCore
package import SystemPackage

/// Whether a file that holds credentials, or says what Inlet runs and where files go, is held as it should be: judged from
/// what stat(2) says of it.
package struct FileTrust: Sendable {
    /// Who reads it. Root's group counts as everybody's own: what it may read, root may read anyway.
    package struct Reader: Sendable, Equatable {
        package var user: UInt32
        package var groups: Set<UInt32>

        package init(user: UInt32, groups: Set<UInt32>) {
            self.user = user
            self.groups = groups.union([0])
        }
    }

    package enum Kind: Sendable, CaseIterable {
        /// May be read by all as long as no credential is written in it.
        case configuration
        /// A credential and nothing else.
        case credential
    }

    package var permissions: FilePermissions
    package var owner: UInt32
    package var group: UInt32

    /// Whether somebody may read it who is none of ours. Of root's choice of a group nothing is known: it is taken as meant.
    package func isReadableByStrangers(for reader: Reader) -> Bool {
        if permissions.contains(.otherRead) { return true }
        return permissions.contains(.groupRead) && reader.user != 0 && !reader.groups.contains(group)
    }

    /// What is wrong, each with the remedy; continues the name of the file.
    package func objections(to kind: Kind, for reader: Reader) -> [String] {
        var found: [String] = []
        if kind == .credential, isReadableByStrangers(for: reader) {
            found.append(
                permissions.contains(.otherRead)
                    ? "may be read by everyone, and is a credential; chmod 600"
                    : "may be read by the group \(group), which is none of ours, and is a credential; chmod 600")
        }
        if !permissions.isDisjoint(with: [.groupWrite, .otherWrite]) {
            let what = kind == .configuration ? ", and with it what Inlet runs and where files go" : ""
            found.append("may be written by others\(what); chmod go-w")
        }
        if owner != 0, owner != reader.user {
            found.append("belongs to the user \(owner), who is neither root nor us; chown it")
        }
        return found
    }
}

extension FileTrust {
    private init(_ stat: Stat) {
        self.init(permissions: stat.permissions, owner: stat.userID.rawValue, group: stat.groupID.rawValue)
    }

    /// What is known of a file that is read later, if it is there.
    init?(of path: FilePath) {
        // Whoever reads the file says why it cannot be.
        guard let stat = try? path.stat() else { return nil }
        self.init(stat)
    }

    /// A file read whole, up to a limit.
    ///
    /// - Throws: what prints as the reason, in words.
    static func read(_ path: FilePath, limit: Int) throws -> (bytes: [UInt8], trust: FileTrust) {
        // Not blocking, because opening a FIFO would wait for its writer.
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
