internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The temporary files of one delivery in its checkpoint: this agent's own, and those of agents that had the delivery
/// before.
///
/// An agent that has lost a delivery may be alive and merely late, and still write. Its file stays until the delivery
/// has its final name. rename(2), which never overwrites, decides who gives that; after it no other copy is of use.
/// Where the disk has no room for both, the file is removed earlier, once nothing of it has changed for ten minutes. A
/// late agent whose file is removed loses its work, and nothing else: it looks its file up by name, finds none, and
/// fails.
struct FolderCopies: Sendable, Equatable {
    /// The name of the file that an attempt writes, or has left behind. Earlier versions left it empty.
    static let ownNote = "copying"
    /// The names of other agents' files, each followed by a slash.
    static let othersNote = "left"
    /// In nanoseconds. A mounted folder may hang for minutes, and its writer go on.
    private static let stillFor: Int64 = 600 * 1_000_000_000

    private let own: [UInt8]?
    private let others: [[UInt8]]

    init(_ entries: [String: [UInt8]]) {
        own = entries[Self.ownNote]
        others = (entries[Self.othersNote] ?? []).split(separator: UInt8(ascii: "/")).map { Array($0) }
    }

    var isEmpty: Bool { own == nil && others.isEmpty }

    /// To the next agent all of them are another's.
    var handedOver: [String: [UInt8]] {
        let names = (others + [own].compactMap(\.self)).filter { !$0.isEmpty }
        return names.isEmpty ? [:] : [Self.othersNote: names.flatMap { $0 + [UInt8(ascii: "/")] }]
    }

    /// Removes what an earlier attempt of this agent left: it has died, or has ended.
    func removeOwn(of name: FilePath.Component, in folder: Folder) {
        guard let own else { return }
        if own.isEmpty { return FileCopy.removeLeftovers(of: name, in: folder) }
        remove([own], of: name, in: folder)
    }

    /// Once the delivery has its final name, or is given up.
    func removeOthers(of name: FilePath.Component, in folder: Folder) { remove(others, of: name, in: folder) }

    /// Removes those whose writers have been still for long. - Returns: whether there were any.
    func removeStill(of name: FilePath.Component, in folder: Folder) -> Bool {
        guard !others.isEmpty, let now = Self.now(in: folder) else { return false }
        let still = others.filter { bytes in
            guard let other = Self.temporaryName(bytes, of: name) else { return false }
            // One that cannot be looked at stays.
            return (try? folder.look(other))?.identity.map { now - $0.changed >= Self.stillFor } ?? false
        }
        remove(still, of: name, in: folder)
        return !still.isEmpty
    }

    /// The time by the clock that gives the folder's files their times; nil where it cannot be asked for.
    private static func now(in folder: Folder) -> Int64? {
        let probe = FileCopy.temporaryName(for: ".inlet-check")
        do throws(SystemError) {
            try folder.create([], as: probe, mode: 0o600)
            let look = try folder.look(probe)
            try folder.remove(probe)
            return look.identity?.changed
        } catch {
            // Without an answer nothing is removed.
            return nil
        }
    }

    private func remove(_ names: [[UInt8]], of name: FilePath.Component, in folder: Folder) {
        for bytes in names {
            guard let other = Self.temporaryName(bytes, of: name) else { continue }
            // A leftover takes space and is never read.
            try? folder.remove(other)
        }
    }

    /// nil for any name but a temporary one of `name`: notes of other agents remove nothing else.
    private static func temporaryName(_ bytes: [UInt8], of name: FilePath.Component) -> FilePath.Component? {
        let path = FilePath(bytes: bytes)
        guard path.isRelative, path.components.count == 1, let other = path.lastComponent,
            FileCopy.isTemporaryName(other, for: name)
        else { return nil }
        return other
    }
}
