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
                var (absent, bytes): ([VOPIManifest.Entry], Int64) = ([], 0)
                var last: (path: FilePath, folder: Folder)?
                _ = try Self.make("", in: folder)
                for entry in manifest.entries {
                    let path = FilePath(entry.path).removingLastComponent()
                    if last?.path != path { last = (path, try Self.make(path, in: folder)) }
                    guard let place = last?.folder else { continue }
                    if let size = try Self.size(of: entry, place) {
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

    /// The open folder that a file of the job goes to; `folder` is the job's own.
    func place(of entry: VOPIManifest.Entry, in folder: FilePath) async throws(DeliveryError) -> Folder {
        let path = FilePath(entry.path).removingLastComponent()
        let result = await pool.run { () -> Result<Folder, DeliveryError> in
            do throws(DeliveryError) { return .success(try Self.make(path, in: folder)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Whether a whole file has this name.
    func isThere(_ entry: VOPIManifest.Entry, in folder: Folder) async -> Bool {
        await pool.run { (try? Self.size(of: entry, folder)) != nil }
    }

    /// Of a whole file with this name; nil for none.
    private static func size(of entry: VOPIManifest.Entry, _ folder: Folder) throws(DeliveryError) -> Int64? {
        guard let name = FilePath(entry.path).lastComponent else { return nil }
        do throws(SystemError) {
            return try folder.look(name).identity?.size
        } catch {
            throw DeliveryError.unwritable(error)
        }
    }

    /// Makes a folder at or below the job's own, and opens it. None of them may be a symlink: whoever may write there would
    /// decide where the agent, which may do more, puts its files.
    static func make(_ path: FilePath, in folder: FilePath) throws(DeliveryError) -> Folder {
        do throws(SystemError) {
            let results = try Folder.making(folder.removingLastComponent(), mode: 0o755)
            return try results.folder(below(folder, path), making: 0o755)
        } catch {
            guard error.isLinked else { throw DeliveryError.unwritable(error) }
            throw DeliveryError(
                .giveUp, .destinationExists,
                "\(folder.pushing(path).display) is a symlink, or behind one; results are not written through it")
        }
    }

    /// The same without making it.
    static func open(_ path: FilePath, in folder: FilePath) throws(SystemError) -> Folder {
        try Folder(folder.removingLastComponent()).folder(below(folder, path))
    }

    private static func below(_ folder: FilePath, _ path: FilePath) -> FilePath {
        FilePath(root: nil, folder.lastComponent.map { [$0] } ?? []).pushing(path)
    }
}
