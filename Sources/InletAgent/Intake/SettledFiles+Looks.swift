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
        /// Those of them that the root's rule leaves out, unless the journal knows them.
        var refused: [FilePath: SourceRule.Refusal] = [:]

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
            let found = lookInTurn(path)
            switch found {
            case .regular(let identity, _, _):
                if isSkipped(identity) {
                    noteSkipped(path)
                    looked.judged.append((path, .known))
                } else {
                    if let refusal = found?.refusal(by: rule) { looked.refused[path] = refusal }
                    looked.arrivals.append(Arrival(root: root, path: path, identity: identity, volume: volume))
                }
            case .missing:
                refused.forget(path)
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

    /// What a marker, or a file of labels, is; nil also for one that the root's rule leaves out.
    func belonging(_ path: FilePath) -> FileIdentity? {
        let found = look(path)
        return found?.refusal(by: rule) == nil ? found?.identity : nil
    }

    /// Whether the root's rule leaves the file out, which is noted then.
    mutating func isRefused(_ path: FilePath, _ looked: Looked) -> Bool {
        guard let refusal = looked.refused[path] else { return false }
        refused.note(path, refusal)
        return true
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
