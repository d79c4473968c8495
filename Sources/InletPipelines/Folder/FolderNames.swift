internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The names that a folder's file system takes, found out by trying. FAT, exFAT, NTFS and many SMB servers refuse some
/// characters, or drop dots and spaces at the end of a name.
final class FolderNames: Sendable {
    /// Another file system may be mounted at the same place, and get the same number.
    private struct Place: Hashable {
        let folder: UInt64
        let device: UInt64
        let kind: FileSystemKind
    }

    private let known = Mutex<[Place: NameLimits]>([:])

    /// The characters that some file system refuses; of the control characters, one stands for all.
    private static let doubtful = Array("\"*:<>?\\|\u{1}".utf8)
    private static let doubtfulLast = Array(". ".utf8)
    /// Every file system takes such a length (eCryptfs has the shortest).
    private static let shortest = 143

    /// `key` as the file system of `top` can hold it. Blocks.
    func held(_ key: String, in top: Folder) throws(SystemError) -> String {
        if key.unicodeScalars.split(separator: "/").allSatisfy({ Self.isHeldAnywhere(String($0)) }) { return key }
        return KeptName.held(key, try limits(of: top))
    }

    /// Whether `key` may be another key's encoded form there. Blocks.
    func mayBeEncoded(_ key: String, in top: Folder) throws(SystemError) -> Bool {
        guard key.utf8.contains(UInt8(ascii: "%")) else { return false }
        var none = NameLimits()
        let limits = try limits(of: top)
        none.longest = limits.longest
        return limits != none
    }

    private func limits(of top: Folder) throws(SystemError) -> NameLimits {
        let identity = try top.identity()
        let place = Place(
            folder: identity.inode, device: identity.device, kind: try FileSystemKind.of(top.path))
        if let limits = known.withLock({ $0[place] }) { return limits }
        let limits = try Self.tried(in: top)
        known.withLock { $0[place] = limits }
        return limits
    }

    private static func isHeldAnywhere(_ name: String) -> Bool {
        let bytes = KeptName.bytes(of: name)
        return bytes.count <= shortest && String(validating: bytes, as: UTF8.self) != nil
            && !bytes.contains { $0 < 0x20 || doubtful.contains($0) }
            && !(bytes.last.map(doubtfulLast.contains) ?? false)
    }

    // MARK: - Trying

    private static func tried(in top: Folder) throws(SystemError) -> NameLimits {
        var limits = NameLimits()
        limits.longest = top.longestName
        let start = Array(".inlet-check-\([UInt8].unforeseeable(4).hex)".utf8)
        // Where even this name is not listed, listings tell nothing.
        if try !takes(start, in: top) { return limits }
        for byte in doubtful where try !takes(start + [byte] + Array(".tmp".utf8), in: top) {
            limits.refused.formUnion(byte < 0x20 ? Array(1..<0x20) : [byte])
        }
        for byte in doubtfulLast where try !takes(start + [byte], in: top) { limits.refusedLast.insert(byte) }
        limits.isText = try !takes(start + [0xFF], in: top)
        return limits
    }

    /// Whether a new file of this name has it.
    private static func takes(_ bytes: [UInt8], in top: Folder) throws(SystemError) -> Bool {
        guard let name = FilePath(bytes: bytes).lastComponent else { return false }
        do throws(SystemError) {
            try top.create([], as: name, mode: 0o600)
        } catch {
            // SMB servers answer with the second.
            if [.invalidArgument, .noSuchFileOrDirectory, .illegalByteSequence].contains(error.code) { return false }
            throw error
        }
        var isThere = false
        var names = try top.list()
        while let entry = try names.next() { isThere = isThere || entry.name == name }
        try top.remove(name)
        return isThere
    }
}
