package import InletCore
internal import InletLinux
package import SystemPackage

/// The settings of a `type: folder` destination: a local or mounted folder.
package struct FolderSettings: Sendable {
    package enum Verify: String, Sendable, CaseIterable {
        /// Reads the copy back from the disk and compares its SHA-256 with the source's.
        case readBack = "read-back"
        /// Compares only the length.
        case size
    }

    /// Must exist: a missing folder means an unmounted disk, so Inlet does not create it.
    package var path: FilePath
    package var verify: Verify
    /// Bytes that must stay free on its file system.
    package var minFree: Int64

    package static let type = DestinationType(
        name: "folder", summary: "another folder of this machine, or one mounted on it",
        keys: FolderKind().specs, folderKey: "path", names: .keep)

    package init(_ values: ConfigSection) {
        let values = Section(FolderKind(), values)
        path = values.path ?? ""
        verify = values.verify
        minFree = values.minFree
    }
}

package struct FolderKind: DestinationKind {
    let path = Key("path", .path, required: true, "The folder. It must exist, so that Inlet notices an unmounted disk.")
    let verify = Key(
        "verify", .choice(FolderSettings.Verify.self), default: .readBack,
        "Proof of a copy. read-back compares the SHA-256 of the bytes on the disk; size compares lengths.")
    let minFree = Key("min_free", .bytes, default: "0", "Space that Inlet leaves free on the file system.")

    package var type: DestinationType { FolderSettings.type }
    package var pipeline: any Pipeline.Type { FolderPipeline.self }

    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = FolderSettings(destination.values)
        var made = Destination(
            name: destination.name, type: destination.type,
            pipeline: FolderPipeline(
                settings: settings, pool: BlockingPool(name: "folder", threads: 4), hashing: factory.pool),
            smallLimit: 8 << 20, connections: 4, maxInFlight: nil)
        made.folder = settings.path
        made.setAddress(settings.path.lexicallyNormalized().string)
        return made
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "library", place: "A folder, or a NAS share that is mounted here",
            words: ["directory", "disk", "drive", "usb", "nfs", "smb", "cifs"],
            questions: [
                .init(
                    "path", "Which folder should receive them?", .path, help: "the folder that files go to",
                    example: "/nonexistent/library")
            ],
            hints: ["min_free: 10GiB              # space that must stay free"], route: DestinationSetup.mirrored,
            example: "--watch ~/Drop --to folder --path /srv/library --on-success archive --yes")
    }
}

// MARK: - Looking at what was delivered

extension FolderPipeline: DeliveryVerifying {
    /// Looks at the file; reads it past the page cache.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        try await withTaskExecutorPreference(pool) { () async throws(DeliveryError) in
            _ = try requireFolder()
            let key = FilePath(key: order.proof.key)
            guard key.isRelative, key.components.allSatisfy({ $0.kind == .regular }) else {
                return .cannotTell("the key '\(DisplayText.escape(order.proof.key))' is not a path below a folder")
            }
            do throws(SystemError) {
                return try Self.look(settings.path.pushing(key), order)
            } catch {
                return try Verification(error)
            }
        }
    }

    private static func look(_ path: FilePath, _ order: VerifyOrder) throws(SystemError) -> Verification {
        guard let name = path.lastComponent else { return .cannotTell("the key is empty") }
        let folder = try Folder(path.removingLastComponent())
        let look = try folder.look(name)
        if look == .missing { return .missing("\(path.display) is not there") }
        guard let size = look.identity?.size else { return .differs("\(path.display) is not a regular file") }
        if size != order.proof.size, try hasLaterGeneration(path, name, folder, order) {
            return .same("length of what was delivered; generations were added to this history")
        }
        guard order.comparesBytes, size == order.proof.size else { return order.compare(size: size, etag: nil) }
        var check = ContentCheck(order)
        var reader = try UncachedReader.open(name, in: folder)
        while try reader.next({ check.update($0) }) {
            if Task.isCancelled { throw SystemError(call: "read", path: path, code: .canceled) }
        }
        return check.finish()
    }

    /// Whether this is the chain file of a delivered ASC MHL history that has got generations since. Inlet adds its own to
    /// a history that came with a card.
    private static func hasLaterGeneration(
        _ path: FilePath, _ name: FilePath.Component, _ folder: Folder, _ order: VerifyOrder
    ) throws(SystemError) -> Bool {
        try ManifestFolder.continues(path, name, in: folder) { earlier in
            var check = ContentCheck(order)
            earlier.withUnsafeBytes { check.update($0) }
            if case .same = check.finish() { return true }
            return false
        }
    }
}
