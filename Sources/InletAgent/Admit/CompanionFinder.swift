internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Collects, from the disk and the journal, the facts that `CompanionRule` needs about files that may belong together.
///
/// The disk is read first: the journal then knows every file that was disposed of between the two.
extension AdmissionStage {
    /// The role of each new file among its companions. Asks the journal once for all of them, and opens only companions
    /// that may go with a file now. Blocks on the disk.
    ///
    /// - Returns: the role of each, in their order, or why it is unknown now.
    mutating func findCompanions(
        of arrivals: [FoundFile], at now: WallTime
    ) async -> [Result<CompanionStatus, any Error>] {
        let around = arrivals.map { companions.around($0) }
        var facts = CompanionContext()
        var failures: [FilePath: SystemError] = [:]
        look(around.flatMap(\.disk), &facts, &failures)
        var failure: JournalError?
        do throws(JournalError) {
            try await ask(Array(Set(around.flatMap(\.journal))), &facts)
        } catch {
            failure = error
        }
        var results: [Result<CompanionStatus, any Error>] = []
        for (arrival, around) in zip(arrivals, around) {
            if let unread = around.disk.lazy.compactMap({ failures[$0] }).first {
                results.append(.failure(unread))
            } else if let failure, !around.journal.isEmpty {
                results.append(.failure(failure))
            } else {
                results.append(
                    Result {
                        try probeCompanions(of: arrival, &facts, at: now)
                        // A file written since the first look is newer than that.
                        return companions.status(of: arrival, facts, at: max(now, .now))
                    })
            }
        }
        return results
    }

    /// Whether a companion that may go with a file now has a writer. Looks once more after the probe: a writer that
    /// closed in between has left another file.
    mutating func probeCompanions(
        of arrival: FoundFile, _ facts: inout CompanionContext, at now: WallTime
    ) throws(SystemError) {
        for file in companions.probed(for: arrival, facts, at: now) {
            facts[file.path].isBusy = WriterProbe.probe(file.place) == .busy
            let found = try checker.turn.look(file.path)
            facts[file.path].identity = found.refusal(by: settings.sources) == nil ? found.identity : nil
        }
    }

    private mutating func look(
        _ paths: [FilePath], _ facts: inout CompanionContext, _ failures: inout [FilePath: SystemError]
    ) {
        // In their order: neighbours share a folder.
        var seen: Set<FilePath> = []
        for path in paths where seen.insert(path).inserted {
            do throws(SystemError) {
                let found = try checker.turn.look(path)
                if let identity = found.identity, found.refusal(by: settings.sources) == nil {
                    facts[path] = CompanionContext.File(identity)
                }
            } catch  where error.isUnnameable {
                continue
            } catch {
                failures[path] = error
            }
        }
    }

    private func ask(_ paths: [FilePath], _ facts: inout CompanionContext) async throws(JournalError) {
        if paths.isEmpty { return }
        let files = paths.map { (path: $0, identity: facts[$0].identity) }
        let rows = try await journal.newest(root, files, volume: volume, tolerance: tolerance)
        for case (let path, (let row, let isKnown)?) in zip(paths, rows) {
            facts[path].row = CompanionContext.Row(
                id: row.id, state: row.state, code: row.code, isFinished: row.finishedAt != nil, identity: row.identity)
            facts[path].isKnown = isKnown
        }
    }
}

extension RouteTable {
    /// The file on the disk that the file of `arrival` goes with; nil for nearly every file. Blocks.
    func belonging(of arrival: FoundFile) throws(SystemError) -> CompanionMatch? {
        for belonging in belongings(of: arrival.path) {
            guard let identity = try FileLook.look(at: RootedPath(arrival.root, belonging.main)).identity,
                route(for: belonging.main, size: identity.size)?.name == belonging.route.name
            else { continue }
            return belonging
        }
        return nil
    }
}
