package import InletCore
package import SystemPackage

/// What a `type: folder` destination is told: a local or mounted folder.
package struct FolderSettings: Sendable {
    package enum Verify: String, Sendable, CaseIterable {
        /// The copy is read back from the disk and its SHA-256 compared with the source's.
        case readBack = "read-back"
        /// Only the length is compared.
        case size
    }

    /// Must exist: a missing folder is an unmounted disk, not one to be made.
    package var path: FilePath
    package var verify: Verify
    /// Bytes that must stay free on its file system.
    package var minFree: Int64

    package static let type = DestinationType(
        name: "folder", summary: "another folder of this machine, or one mounted on it",
        keys: [
            KeySpec("path", .path, required: true, "The folder; it must exist, so that an unmounted disk is noticed."),
            KeySpec(
                "verify", .choice(Verify.allCases.map(\.rawValue)), default: "read-back",
                "read-back compares the SHA-256 of what the disk holds; size compares lengths."),
            KeySpec("min_free", .bytes, default: "0", "Space that must stay free on the file system."),
        ])

    package init(_ values: ConfigSection) {
        path = FilePath(values.string("path") ?? "")
        verify = values.string("verify").flatMap(Verify.init) ?? .readBack
        minFree = values.bytes("min_free") ?? 0
    }
}
