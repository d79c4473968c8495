internal import InletCore
internal import InletFleet
internal import InletJournal
internal import Synchronization
internal import SystemPackage

/// A folder that this agent watched alone has become a share. The files that it took then stay its own: it sends them,
/// and disposes of their sources by their own rules. The fleet knows them before this agent lists the share, so that
/// nobody admits them again.
extension FleetPlaces {
    private static let ownAtOnce = 1000
    /// So many pages at each look at the shares, which the other shares wait for.
    private static let mostPages = 20

    /// Tells the fleet which versions in its shares this agent has sent, or will send, as its own.
    ///
    /// - Parameter forgotten: called with a share once the fleet has forgotten some of its files.
    func tellOwn(forgotten: (FilePath) -> Void) async {
        guard member.grants else { return }
        for share in usable where !share.isTold || share.hasLostOwn {
            do {
                let isTold = if share.isTold { true } else { try await tellOwn(of: share) }
                if isTold { try await forgetLostOwn(of: share, forgotten) }
                state.withLock { state in
                    guard isTold, state.shares[share.root]?.marker == share.marker else { return }
                    state.shares[share.root]?.isTold = true
                }
                if !isTold { member.signals.raise(.fleet(.places)) }
            } catch let error as FleetError {
                if error.code == .fault || error.code == .argument {
                    member.log.emit(.agentError(reason: "fleet: the own files of \(share.name) are not told: \(error)"))
                }
            } catch {
                // The services that use the journal all the time report its failure.
            }
        }
    }

    /// Made again after a crash, each call says the same.
    ///
    /// - Returns: whether the fleet knows all.
    private func tellOwn(of share: Share) async throws -> Bool {
        guard let marker = share.marker, let number = share.number else { return false }
        var last = try await journal.toldInPlace(share.name, share.root)
        for _ in 0..<Self.mostPages {
            guard let page = try await journal.ownInPlace(share.root, after: last, limit: Self.ownAtOnce) else {
                return true
            }
            last = page.last
            var (own, mark): ([PlaceVersion], Int64?) = ([], nil)
            if !page.versions.isEmpty {
                let answer = try await member.link.ownVersions(number, page.versions)
                own = zip(page.versions, answer.own).filter(\.1).map(\.0)
                mark = answer.mark
            }
            try await journal.keepOwnInPlace((share.name, marker, share.root), own, upTo: last, mark: mark)
        }
        return false
    }

    /// A source that went away, or changed, before anything was sent may come back, and is a new file then.
    private func forgetLostOwn(of share: Share, _ forgotten: (FilePath) -> Void) async throws {
        guard let marker = share.marker, let number = share.number else { return }
        // An end during the look has the next one.
        state.withLock { $0.shares[share.root]?.hasLostOwn = false }
        do {
            let lost = try await journal.lostOwnInPlace(share.name, marker, share.root)
            for start in stride(from: 0, to: lost.count, by: Self.ownAtOnce) {
                let page = Array(lost[start..<min(start + Self.ownAtOnce, lost.count)])
                let known = try await member.link.ownVersions(number, page, are: false).own
                let news = zip(page, known).filter { !$1 }.map(\.0)
                try await journal.forgetInPlace(marker, news)
                if !news.isEmpty { forgotten(share.root) }
            }
        } catch {
            state.withLock { $0.shares[share.root]?.hasLostOwn = true }
            throw error
        }
    }

    /// Whether the fleet has to forget it is looked for in the journal.
    func ownEnded(_ file: FileRow) {
        let isOwn = state.withLock { state in
            guard let share = state.shares[file.root] else { return false }
            state.shares[file.root]?.hasLostOwn = true
            return share.isTold
        }
        if isOwn { member.signals.raise(.fleet(.places)) }
    }

    // MARK: - Disposing

    /// A file that its route rejects is in the journal of the agent that lists the share, and of no other. Others are from
    /// before the folder was a share: where the fleet has other work of them, others may have yet to deliver them.
    func disposalOfOwn(_ file: FileRow) async -> DisposalRight {
        guard let share = share(file.root) else { return .granted }
        if file.state == .rejected {
            let isHeld = usable.contains { $0.root == file.root && $0.fence != nil }
            return isHeld
                ? .granted : .unknown("waits: \(share.trouble ?? "this agent does not list \(share.name) now")")
        }
        guard share.isTold, let marker = share.marker else {
            return .unknown("waits: the fleet does not know yet that it is \(member.name)'s own")
        }
        let version = PlaceVersion(of: file.path, size: file.identity.size, modified: file.identity.modified)
        do {
            return try await journal.isFinishedInPlace(marker, version)
                ? .granted : .left("its folder is a share of the fleet now")
        } catch {
            return .unknown("the journal does not answer: \(error)")
        }
    }
}
