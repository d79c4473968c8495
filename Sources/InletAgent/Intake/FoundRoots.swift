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

    /// Those below the folders before the first wildcard.
    private let avoided: Set<FilePath>

    /// More are not taken up: such a pattern was not meant for volumes.
    private static let most = 1000

    /// - Parameter table: nil = as it is now.
    init(_ pattern: RootPattern, mounts table: MountTable? = nil) {
        avoided = (table ?? (try? .current()))?.servers(below: pattern.parent) ?? []
        var nearest = pattern.parent
        while !Self.isDirectory(nearest), nearest.lastComponent != nil { nearest.removeLastComponent() }
        if nearest == pattern.parent { look(in: nearest, pattern.parts[...]) } else { parents.insert(nearest) }
    }

    private mutating func look(in folder: FilePath, _ parts: ArraySlice<RootPattern.Part>) {
        if avoided.contains(folder) {
            servers.insert(folder)
            return
        }
        guard let part = parts.first else {
            if case .directory(let identity)? = try? FileLook.look(at: folder), roots.count < Self.most {
                roots[folder] = identity.device
            }
            return
        }
        parents.insert(folder)
        switch part {
        case .name(let name):
            let next = folder.appending(name)
            if avoided.contains(next) || Self.isDirectory(next) { look(in: next, parts.dropFirst()) }
        case .pattern:
            guard var names = try? DirectoryStream(folder) else { return }
            while roots.count < Self.most, let entry = try? names.next() {
                guard entry.kind == .directory, part.matches(entry.name) else { continue }
                look(in: folder.appending(entry.name), parts.dropFirst())
            }
        }
    }

    private static func isDirectory(_ path: FilePath) -> Bool {
        if case .directory? = try? FileLook.look(at: path) { true } else { false }
    }
}
