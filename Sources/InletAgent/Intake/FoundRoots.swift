internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The folders of a pattern that are there, and those in which more may come.
struct FoundRoots {
    /// With the number of the device that each is on.
    var roots: [FilePath: UInt64] = [:]
    var parents: Set<FilePath> = []
    /// Mounts of other machines that the pattern reaches. They are not looked at: one that does not answer would hold up all
    /// others.
    var servers: Set<FilePath> = []
    /// What could not be looked at for now, and why: what is there, or below it, may still be there.
    var unanswered: [FilePath: SystemError] = [:]

    /// Those below the folders before the first wildcard.
    private let avoided: Set<FilePath>

    /// More are not taken up: such a pattern was not meant for volumes.
    private static let most = 1000

    /// - Parameter table: nil = as it is now.
    init(_ pattern: RootPattern, mounts table: MountTable? = nil) {
        do throws(SystemError) {
            let mounts = if let table { table } else { try MountTable.current() }
            avoided = mounts.servers(below: pattern.parent)
        } catch {
            // Without the list of mounts nothing may be asked: it could be a server that does not answer.
            avoided = []
            unanswered[pattern.parent] = error
            return
        }
        var nearest = pattern.parent
        while device(of: nearest) == nil, nearest.lastComponent != nil { nearest.removeLastComponent() }
        if nearest == pattern.parent { look(in: nearest, pattern.parts[...]) } else { parents.insert(nearest) }
    }

    private mutating func look(in folder: FilePath, _ parts: ArraySlice<RootPattern.Part>) {
        if avoided.contains(folder) {
            servers.insert(folder)
            return
        }
        guard let part = parts.first else {
            if roots.count < Self.most, let device = device(of: folder) { roots[folder] = device }
            return
        }
        parents.insert(folder)
        switch part {
        case .name(let name):
            let next = folder.appending(name)
            if avoided.contains(next) || device(of: next) != nil { look(in: next, parts.dropFirst()) }
        case .pattern:
            do throws(SystemError) {
                var names = try DirectoryStream(folder)
                while roots.count < Self.most, let entry = try names.next() {
                    guard entry.kind == .directory, part.matches(entry.name) else { continue }
                    look(in: folder.appending(entry.name), parts.dropFirst())
                }
            } catch {
                note(error, folder)
            }
        }
    }

    /// That of a folder; nil for anything else.
    private mutating func device(of path: FilePath) -> UInt64? {
        do throws(SystemError) {
            guard case .directory(let identity) = try FileLook.look(at: path) else { return nil }
            return identity.device
        } catch {
            note(error, path)
            return nil
        }
    }

    /// A folder that this user may not see is none of his.
    private mutating func note(_ error: SystemError, _ path: FilePath) {
        if !error.isMissing, !error.isPermission { unanswered[path] = error }
    }

    /// Whether nothing can be said of that folder for now.
    func isUnanswered(_ root: FilePath) -> Bool { unanswered.keys.contains { root.isWithin($0) } }
}
