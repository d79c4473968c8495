internal import InletCore
internal import InletLinux
internal import SystemPackage

extension FolderPipeline {
    /// Before anything is made or copied: whether the file system can have each name of the key, which a template may make
    /// longer than any file's. Trying again would not help.
    func requireNames(_ key: String, in top: Folder) throws(DeliveryError) {
        for name in FilePath(key).components {
            if try canHold(name, top) { continue }
            throw DeliveryError(
                .giveUp, .nameTooLong,
                "the key has the name '\(DisplayText.escape(name.bytes))' of \(name.bytes.count) bytes, and the file system "
                    + "of \(settings.path.display) takes \(top.longestName); shorten the route's key, then retry")
        }
    }

    private func canHold(_ name: FilePath.Component, _ top: Folder) throws(DeliveryError) -> Bool {
        do {
            return try top.canHold(name)
        } catch {
            throw .unwritable(error)
        }
    }
}
