internal import InletCore
internal import SystemPackage

/// What a new configuration changes about the folders that are watched. Decides; `Intakes` does it.
struct IntakePlan: Sendable {
    /// Folders and patterns that are watched no more, or no more as they were.
    var ends: [FilePath] = []
    /// Those that are watched from now on, or in another way.
    var begins: [WatchSettings] = []
    /// Patterns whose folders are looked at anew, each in its place.
    var renews: [FilePath] = []

    /// - Parameter isRouted: whether what becomes of files has changed: then every folder is listed anew, as at a start. Files
    ///   that no route took may have one now, and what a file waited for may be another thing.
    init(from old: [WatchSettings], to new: [WatchSettings], isRouted: Bool) {
        let wanted = Dictionary(new.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        let known = Dictionary(old.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        for root in old {
            guard let next = wanted[root.path] else {
                ends.append(root.path)
                continue
            }
            if next == root, !isRouted { continue }
            if next == root, root.pattern != nil {
                renews.append(root.path)
            } else {
                ends.append(root.path)
                begins.append(next)
            }
        }
        begins += new.filter { known[$0.path] == nil }
    }

    var isEmpty: Bool { ends.isEmpty && begins.isEmpty && renews.isEmpty }
}
