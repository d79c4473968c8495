internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The names that a folder's file system takes, found out by trying: FAT, exFAT, NTFS and many SMB servers refuse some
/// characters, or drop dots and spaces at the end of a name.
final class FolderNames: Sendable {
    /// By the number of the file system; another one may be mounted at the same place.
    private let known = Mutex<[UInt64: NameLimits]>([:])

    /// The characters that some file system refuses; of the control characters, one stands for all.
    private static let doubtful = Array("\"*:<>?\\|\u{1}".utf8)
    private static let doubtfulLast = Array(". ".utf8)
    /// Every file system takes such a length (eCryptfs has the shortest).
    private static let shortest = 143

    /// `key` as the file system of `top` can hold it. Blocks.
    func held(_ key: String, in top: Folder) throws(SystemError) -> String {
        if key.unicodeScalars.split(separator: "/").allSatisfy({ Self.isHeldAnywhere(String($0)) }) { return key }
        let device = try top.identity().device
        if let limits = known.withLock({ $0[device] }) { return KeptName.held(key, limits) }
        let limits = try Self.tried(in: top)
        known.withLock { $0[device] = limits }
        return KeptName.held(key, limits)
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
        // Whatever refuses this name refuses more than characters.
        _ = try takes(start, in: top)
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
