internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What is done when a removable volume comes and goes: what waits of it is found where it is now, and goes on.
struct VolumeArrivals: Sendable {
    let shared: Shared

    /// Files looked at between two transactions.
    private static let group = 256

    private var journal: Journal { shared.journal }

    /// - Parameter isNew: whether it was not there at the start: what was said of it before is said again.
    func arrived(_ place: VolumePlace, at root: FilePath, isNew: Bool) async throws {
        let volume = place.volume
        guard let key = volume.key else { return shared.roots.set(.present(volume: nil), root) }
        if isNew { try await journal.forgetLastWord(of: key) }
        // First: what is known by another name would be taken for another volume's.
        try await inherit(place.weakerKeys, key, at: root)
        try await journal.volumeArrived(key, at: root)
        let waiting = try await recognise(key, at: root)
        shared.roots.set(.present(volume: key), root)
        try await journal.volumeIsBack(key, at: .now)
        shared.log.emit(.volumeAdded(root: root, volume: volume.name, waiting: waiting))
        if waiting == 0 { return }
        shared.signals.raiseDeliverable()
        shared.signals.raise(.finishable)
    }

    /// Files that were known by the path of their root, or by a weaker name of the volume, are known by its best one from now on:
    /// those that are there, by size and time.
    private func inherit(_ weaker: [String], _ key: String, at root: FilePath) async throws {
        if weaker.isEmpty { return }
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        var last: FilePath = ""
        while true {
            let files = try await journal.inheritance(
                of: key, from: weaker, at: root, after: last, limit: Self.group)
            guard let end = files.last else { return }
            last = end.path
            var turn = FolderTurn(root)
            let same = files.filter { file in
                // What cannot be looked at now is held against size and time when it can: until then it stays known.
                guard let look = try? turn.look(file.path) else { return true }
                return look.identity?.isKnown(as: file.identity, tolerance: tolerance) == true
            }
            turn.close()
            if !same.isEmpty { try await journal.inherit(same, by: key) }
        }
    }

    /// Of FAT, files have another inode after each mount: those that wait are the same by size and time.
    private func recognise(_ key: String, at root: FilePath) async throws -> Int {
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        var (last, count) = (Int64(0), 0)
        while true {
            let files = try await journal.unfinished(of: key, after: last, limit: Self.group)
            guard let end = files.last else { return count }
            last = end.id
            count += files.count
            var turn = FolderTurn(root)
            let moved = files.compactMap { file -> (id: Int64, identity: FileIdentity)? in
                // What awaits its disposal is compared with what was proved when its turn comes: it may have been edited.
                guard file.state == .pending else { return nil }
                // What cannot be looked at now is compared when it is opened for its delivery.
                guard let now = (try? turn.look(file.path))?.identity, now != file.identity,
                    now.isKnown(as: file.identity, tolerance: tolerance)
                else { return nil }
                return (file.id, now)
            }
            turn.close()
            if !moved.isEmpty { try await journal.refresh(moved) }
        }
    }

    func left(_ volume: Volume?, _ root: FilePath) {
        shared.roots.set(nil, root)
        if let volume, volume.key != nil { shared.log.emit(.volumeRemoved(root: root, volume: volume.name)) }
    }
}
