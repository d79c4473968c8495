package import SystemPackage

/// Whether the kernel lets users link only to files that they own, or may read and write.
package enum LinkProtection {
    /// nil where the kernel does not say.
    package static func isOn(_ path: FilePath = "/proc/sys/fs/protected_hardlinks") -> Bool? {
        guard let text = try? DurableFile.read(path, limit: 16) else { return nil }
        return text.first.map { $0 != UInt8(ascii: "0") }
    }
}
