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
        return await consider(looked, await admitter.recall(looked.arrivals, tolerance: tolerance))
    }

    /// Blocks.
    mutating func look(_ paths: [FilePath]) -> Looked {
        let begin = ContinuousClock.now
        defer { looking += begin.duration(to: .now) }
        var looked = Looked()
        for path in paths {
            let found = lookInTurn(path)
            switch found {
            case .success(.regular(let identity, _, _)):
                if isSkipped(identity) {
                    noteSkipped(path)
                    looked.judged.append((path, .known))
                } else {
                    // It was a success.
                    if let refusal = (try? found.get())?.refusal(by: rule) { looked.refused[path] = refusal }
                    looked.arrivals.append(Arrival(root: root, path: path, identity: identity, volume: volume))
                }
            case .success(.missing):
                refused.forget(path)
                admitter.deriver?.close(path, kept: [])
                looked.judged.append((path, .look(.gone)))
            case .success(.directory), .success(.symlink), .success(.other):
                noteIrregular(path)
                looked.judged.append((path, .look(.notRegular)))
            case .failure(let error) where volume?.key != nil && !error.isShortage:
                log.emit(.fileTrouble(path: root.pushing(path), reason: "\(error)"))
                // It keeps a card from being said to be safe; at its return it is seen again.
                unread += 1
                looked.judged.append((path, .look(.notRegular)))
            case .failure(let error): looked.judged.append((path, .look(.failing(why: "\(error)"))))
            }
        }
        return looked
    }

    func look(_ path: FilePath) throws(SystemError) -> FileLook { try FileLook.look(at: RootedPath(root, path)) }

    /// What a marker, or a file of labels, is; nil also for one that the root's rule leaves out.
    func belonging(_ path: FilePath) throws(SystemError) -> FileIdentity? {
        let found = try look(path)
        return found.refusal(by: rule) == nil ? found.identity : nil
    }

    /// Whether the root's rule leaves the file out, which is noted then.
    mutating func isRefused(_ path: FilePath, _ looked: Looked) -> Bool {
        guard let refusal = looked.refused[path] else { return false }
        refused.note(path, refusal)
        return true
    }

    /// Of many, each folder is opened once.
    private mutating func lookInTurn(_ path: FilePath) -> Result<FileLook, SystemError> {
        do throws(SystemError) {
            return .success(try turn.look(path))
        } catch {
            return .failure(error)
        }
    }

    /// A file of which something could not be found out.
    func failed(_ path: FilePath, _ error: any Error) -> Settler.Look {
        if error.isOfFile { return .failing(why: "\(error)") }
        log.emit(.fileTrouble(path: root.pushing(path), reason: "\(error)"))
        return .later("\(error)", .seconds(5))
    }
}
