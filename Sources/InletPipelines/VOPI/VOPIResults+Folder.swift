internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The job's folder, as far as it is there already.
extension VOPIResults {
    /// Those that have no file yet, and the bytes of those that have; folders for them are made. What has its final name is
    /// whole: only whole files get one.
    func absent(
        _ manifest: VOPIManifest, in folder: FilePath
    ) async throws(DeliveryError) -> (entries: [VOPIManifest.Entry], bytes: Int64) {
        let result = await pool.run { () -> Result<([VOPIManifest.Entry], Int64), DeliveryError> in
            do throws(DeliveryError) {
                var folders: Set<FilePath> = []
                var (absent, bytes): ([VOPIManifest.Entry], Int64) = ([], 0)
                try Self.make(folder, in: folder)
                for entry in manifest.entries {
                    let path = folder.pushing(FilePath(entry.path))
                    if folders.insert(path.removingLastComponent()).inserted {
                        try Self.make(path.removingLastComponent(), in: folder)
                    }
                    if let size = try Self.look(at: path).identity?.size {
                        bytes += size
                    } else {
                        absent.append(entry)
                    }
                }
                return .success((absent, bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Whether a whole file has this name.
    func isThere(_ path: FilePath) async -> Bool {
        await pool.run { (try? FileLook.look(at: path).identity) != nil }
    }

    /// Makes a folder at or below the job's own. None of them may be a symlink: whoever may write there would decide where
    /// the agent, which may do more, puts its files.
    private static func make(_ path: FilePath, in folder: FilePath) throws(DeliveryError) {
        try refuseSymlink(folder)
        var level = folder
        for name in path.components.dropFirst(folder.components.count) {
            level.append(name)
            try refuseSymlink(level)
        }
        do throws(SystemError) {
            try DurableFile.makeDirectories(path, mode: 0o755)
        } catch {
            throw FolderPipeline.unwritable(error)
        }
    }

    private static func refuseSymlink(_ path: FilePath) throws(DeliveryError) {
        guard case .symlink = try look(at: path) else { return }
        throw DeliveryError(
            .giveUp, .destinationExists, "\(path.display) is a symlink; results are not written through it")
    }

    private static func look(at path: FilePath) throws(DeliveryError) -> FileLook {
        do throws(SystemError) {
            return try FileLook.look(at: path)
        } catch {
            throw FolderPipeline.unwritable(error)
        }
    }
}
