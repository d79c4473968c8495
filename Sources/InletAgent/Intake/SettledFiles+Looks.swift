internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The first look at a path whose quiet time is over.
extension SettledFiles {
    /// What was seen of some paths.
    struct Looked: Sendable {
        /// Those of which no more needs to be known.
        var judged: [(FilePath, Considered)] = []
        var arrivals: [Arrival] = []

        var isEmpty: Bool { judged.isEmpty && arrivals.isEmpty }
    }

    /// Looks at due files. The journal is asked once for all of them, and only new ones are opened. Blocks.
    mutating func consider(_ paths: [FilePath]) async -> [(FilePath, Considered)] {
        let looked = look(paths)
        return await consider(looked, await admitter.recall(looked.arrivals, journal, tolerance))
    }

    /// Blocks.
    mutating func look(_ paths: [FilePath]) -> Looked {
        let begin = ContinuousClock.now
        defer { looking += begin.duration(to: .now) }
        var looked = Looked()
        for path in paths {
            switch lookInTurn(path) {
            case .regular(let identity, _, _):
                if isSkipped(identity) {
                    noteSkipped(path)
                    looked.judged.append((path, .known))
                } else {
                    looked.arrivals.append(Arrival(root: root, path: path, identity: identity, volume: volume))
                }
            case .missing:
                admitter.deriver?.close(path, kept: [])
                looked.judged.append((path, .look(.gone)))
            case .directory, .symlink, .other:
                noteIrregular(path)
                looked.judged.append((path, .look(.notRegular)))
            case nil where volume?.key != nil:
                // It keeps a card from being said to be safe; at its return it is seen again.
                unread += 1
                looked.judged.append((path, .look(.notRegular)))
            case nil: looked.judged.append((path, .look(.later("it cannot be looked at", .seconds(5)))))
            }
        }
        return looked
    }

    func look(_ path: FilePath) -> FileLook? {
        tried(path) { () throws(SystemError) in try FileLook.look(at: RootedPath(root, path)) }
    }

    /// Of many, each folder is opened once.
    private mutating func lookInTurn(_ path: FilePath) -> FileLook? {
        tried(path) { () throws(SystemError) in try turn.look(path) }
    }

    private func tried(_ path: FilePath, _ look: () throws(SystemError) -> FileLook) -> FileLook? {
        do throws(SystemError) {
            return try look()
        } catch {
            log.emit(.fileTrouble(path: root.pushing(path), reason: "\(error)"))
            return nil
        }
    }
}
