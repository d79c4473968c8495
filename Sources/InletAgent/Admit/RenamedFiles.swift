internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Files that the journal knows by an earlier path: their rows continue under the new one.
extension AdmissionStage {
    /// - Parameters:
    ///   - arrival: new to the journal, by its path.
    ///   - origins: the paths that it had before.
    /// - Returns: nil when it is admitted as new: its new path has another route, its content differs, or it belongs to
    ///   other files.
    mutating func follow(_ arrival: FoundFile, from origins: [FilePath]) async throws -> EvaluationResult? {
        guard let renamed = try await known(arrival, origins) else { return nil }
        var facts = facts(of: arrival)
        try await hashing.learnFirst(of: arrival, by: admission.routes, at: arrival.place, &facts)
        let route = admission.routes.route(
            for: arrival.path, size: arrival.identity.size, facts: facts)
        guard let route, route.name == renamed.file.route, !route.hasCompanions, route.derive.isEmpty,
            admission.routes.belongings(of: arrival.path).isEmpty
        else { return nil }
        // Where only a length was proved, inode, size and time decide.
        if renamed.file.content != nil,
            try await !renamed.file.hasContent(SourceFile(opening: arrival.place), hashing)
        {
            return nil
        }
        // Only its new name can be refused now, and only before any byte of it was sent.
        var plan: Plan?
        if renamed.isUntold {
            let decision = try await admission.decide(
                arrival, by: admission.routes, at: arrival.place, &facts, hashing)
            guard case .plan(let found) = decision else { return nil }
            plan = found
        }
        guard try await admission.journal.rename(renamed, to: arrival, plan: plan) else {
            return .look(.later("waiting for its delivery: it was renamed during the delivery"))
        }
        renames.forget(arrival.path)
        admission.log.emit(
            .jobRenamed(job: renamed.file.id, path: root.pushing(arrival.path), from: renamed.file.fullPath))
        return .known
    }

    /// The journal's file that is at `arrival`'s path now, by any of its earlier names.
    private func known(_ arrival: FoundFile, _ origins: [FilePath]) async throws -> RenamedFile? {
        for old in origins {
            guard let renamed = try await admission.journal.renamed(from: old, to: arrival) else { continue }
            return try FileLook.look(at: RootedPath(root, old)).isLeft(by: arrival.identity) ? renamed : nil
        }
        return nil
    }
}

extension FileLook {
    /// Whether a file's old path leads elsewhere now. A folder that folds case or normal forms shows the file under
    /// both names; a hard link is a second file.
    func isLeft(by file: FileIdentity) -> Bool {
        guard case .regular(let identity, _, let links) = self else { return true }
        return identity.inode != file.inode || identity.device != file.device || links == 1
    }
}
