internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Files that the journal knows under the path that they had before: they go on as what they are.
extension SettledFiles {
    /// - Parameter arrival: new to the journal, by its path.
    /// - Returns: nil when it is new indeed, or is to be taken as such: its new path has another route, its content is another,
    ///   it belongs together with others.
    mutating func considerRenamed(_ arrival: Arrival) async -> Considered? {
        do {
            guard let renamed = try await known(arrival) else { return forget(arrival) }
            var facts = Facts()
            try await hashing.learnFirst(of: arrival, by: admitter.routes, at: arrival.place, &facts)
            guard
                let route = admitter.routes.route(
                    for: arrival.path, size: arrival.identity.size, mediaType: facts.mediaType),
                route.name == renamed.file.route, !route.hasCompanions, route.derive.isEmpty,
                admitter.routes.belongings(of: arrival.path).isEmpty
            else { return forget(arrival) }
            return try await goOn(renamed, arrival, facts)
        } catch {
            return .look(failed(arrival.path, error))
        }
    }

    /// The file of the journal that is at `arrival`'s path now. The journal may know it by any of the names that it had.
    private func known(_ arrival: Arrival) async throws -> RenamedFile? {
        for old in renames.origins(of: arrival.path) {
            guard let renamed = try await journal.renamed(from: old, to: arrival) else { continue }
            return try FileLook.look(at: RootedPath(root, old)).isLeft(by: arrival.identity) ? renamed : nil
        }
        return nil
    }

    private mutating func goOn(
        _ renamed: RenamedFile, _ arrival: Arrival, _ facts: Facts
    ) async throws -> Considered? {
        let path = root.pushing(arrival.path)
        var facts = facts
        guard try await hasContent(of: renamed.file, at: arrival.place) else { return forget(arrival) }
        // Only its new name can be refused now, and only before anything of it was sent.
        var plan: Plan?
        if renamed.isUntold {
            guard
                case .plan(let found) = try await admitter.decide(
                    arrival, by: admitter.routes, at: arrival.place, &facts, hashing)
            else { return forget(arrival) }
            plan = found
        }
        guard try await journal.rename(renamed, to: arrival, plan: plan) else {
            return .look(.later("waiting for its delivery: it was renamed meanwhile"))
        }
        log.emit(.jobRenamed(job: renamed.file.id, path: path, from: renamed.file.fullPath))
        _ = forget(arrival)
        return .known
    }

    private mutating func forget(_ arrival: Arrival) -> Considered? {
        renames.forget(arrival.path)
        return nil
    }

    /// Where only a length was proved, inode, size and time must do.
    private func hasContent(of file: FileRow, at path: RootedPath) async throws -> Bool {
        guard let content = file.content else { return true }
        let source = try SourceFile(opening: path)
        return try await Fingerprint.matches(content, source, on: hashing.pool, progress: hashing.progress)
    }
}

extension FileLook {
    /// Whether what is at a file's old path is the file no more. A folder that folds case, or normal forms, shows it under
    /// both names, and says that it has one; a hard link is a second one.
    func isLeft(by file: FileIdentity) -> Bool {
        guard case .regular(let identity, _, let links) = self else { return true }
        return identity.inode != file.inode || identity.device != file.device || links == 1
    }
}
