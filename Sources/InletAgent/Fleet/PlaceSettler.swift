internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Says how this agent's work of shares has ended, and takes out of the queue what is another's.
///
/// An answer that was lost leaves it open whether the fleet knows an end. The session is then renewed, and what is still
/// this agent's comes back: work whose end was not heard, or the finishing that its end has made. The rest has ended.
struct PlaceSettler: Sendable {
    let places: FleetPlaces
    let shared: Shared
    let shares: ShareLook

    private static let batch = 500
    /// The pause before the next look for a source that was missing with its share.
    private static let soon = Duration.seconds(5)
    /// The longest pause before a source is sent again that looks changed at each try.
    private static let longest = Duration.seconds(600)
    private static let mostRemembered = 10_000

    init(_ places: FleetPlaces, _ shared: Shared, _ shares: ShareLook) {
        (self.places, self.shared, self.shares) = (places, shared, shares)
    }

    private var journal: Journal { shared.journal }
    private var member: FleetMember { places.member }

    // MARK: - Ends

    /// Says all ends of this session, the many in few calls.
    func settle(in session: Int64) async throws {
        while true {
            let rows = try await staying(journal.endedPlaceWork(session: session, limit: Self.batch))
            if rows.isEmpty { break }
            try await settleDeliveries(rows, in: session)
            if rows.count < Self.batch { break }
        }
        while true {
            let rows = try await staying(journal.finishedPlaceWork(session: session, limit: Self.batch))
            if rows.isEmpty { return }
            let (mark, settled) = try await member.link.settle(
                rows.map { FleetSettlement(work: $0.number, fence: $0.fence, .finished) })
            try await tellFenced(zip(rows, settled).filter { $1.refused != nil }.map(\.0))
            // The source is put away, whoever the fleet believes to have the work.
            try await journal.placeWorkFinished(rows.map(\.file), mark: mark)
            forget(rows.map(\.file))
            if rows.count < Self.batch { return }
        }
    }

    private func staying(_ rows: [PlaceWorkRow]) -> [PlaceWorkRow] {
        let leaving = places.state.withLock(\.leaving)
        return leaving.isEmpty ? rows : rows.filter { !leaving.contains($0.file) }
    }

    private func settleDeliveries(_ rows: [PlaceWorkRow], in session: Int64) async throws {
        let there = try await notKnownToBeGone(rows)
        let said = rows.map { Self.settlement($0, pause: there.contains($0.file) ? pause(of: $0) : nil) }
        let (mark, settled) = try await member.link.settle(said)
        var (ends, gone): ([(file: Int64, finish: Int64?, hasFailed: Bool)], [Int64]) = ([], [])
        var fenced: [PlaceWorkRow] = []
        for (row, (said, answer)) in zip(rows, zip(said, settled)) {
            if answer.refused != nil {
                fenced.append(row)
            } else if said.outcome == .retry {
                gone.append(row.file)
            } else {
                ends.append((row.file, answer.finish, answer.hasFailed))
            }
        }
        // Before the finisher may look: it asks whether this agent has the finishing.
        let known = Dictionary(rows.map { ($0.file, $0) }) { first, _ in first }
        places.state.withLock { state in
            for end in ends {
                let before = state.work.removeValue(forKey: end.file)
                guard let number = end.finish, let row = known[end.file] else { continue }
                let root = state.shares.values.first { $0.marker == row.place }?.root ?? ""
                state.work[end.file] = FleetPlaces.Hold(
                    work: number, fence: 1, session: session, root: before?.root ?? root, isFinishing: true,
                    size: row.size, isReplaced: before?.isReplaced ?? false)
            }
        }
        if !ends.isEmpty { try await journal.placeWorkSettled(ends, mark: mark, at: .now) }
        // The finisher also ends files whose sources are left to others.
        if !ends.isEmpty { shared.signals.raise(.finishable) }
        try await tellFenced(fenced)
        leave(fenced.map(\.file) + gone)
        try await removeLeaving()
    }

    /// Edited in place, or on a file system that renumbers its files, a version may look changed at each try.
    private func pause(of row: PlaceWorkRow) -> Duration {
        guard row.state == .superseded else { return Self.soon }
        let count = places.state.withLock { state in
            if state.changes.count >= Self.mostRemembered { state.changes = [:] }
            state.changes[row.version, default: 0] += 1
            return state.changes[row.version] ?? 1
        }
        return Self.pause(afterChanges: count)
    }

    static func pause(afterChanges count: Int) -> Duration {
        min(soon * (1 << min(max(count - 1, 0), 10)), longest)
    }

    /// - Parameter pause: until the source is sent anew, which may be there; nil where it is not.
    private static func settlement(_ row: PlaceWorkRow, pause: Duration?) -> FleetSettlement {
        let (code, reason) = (row.code?.rawValue, row.reason.map { String($0.prefix(500)) })
        func ended(_ outcome: FleetSettlement.Outcome, after: Duration = .zero) -> FleetSettlement {
            FleetSettlement(
                work: row.number, fence: row.fence, outcome, after: after, code: code, reason: reason)
        }
        switch row.state {
        case .delivered, .duplicate: return ended(.delivered)
        case .gone, .superseded: return pause.map { ended(.retry, after: $0) } ?? ended(.superseded)
        default: return ended(.failed)
        }
    }

    /// Of the rows whose sources went away: those that another agent has to look at, or that are there again. An
    /// agent may lose a share for a moment, or see a folder as it was: only the one that lists it says what is gone.
    private func notKnownToBeGone(_ rows: [PlaceWorkRow]) async throws(JournalError) -> Set<Int64> {
        var found: Set<Int64> = []
        for (place, group) in Dictionary(
            grouping: rows.filter { [.gone, .superseded].contains($0.state) }, by: \.place)
        {
            let share = places.usable.first { $0.marker == place }
            var paths: [FilePath?] = []
            for row in group { paths.append(try await journal.job(row.file)?.file.path) }
            var looks: [ShareLook.Look]?
            if let share { looks = await shares.look(at: paths, in: share.root, marker: place) }
            for (number, row) in group.enumerated() {
                let isThere = Self.isThere(row, paths[number], looks?[number])
                if isThere || row.state == .gone && share?.fence == nil { found.insert(row.file) }
            }
        }
        return found
    }

    private static func isThere(_ row: PlaceWorkRow, _ path: FilePath?, _ look: ShareLook.Look?) -> Bool {
        switch look {
        case .nothing: false
        case .file(let found):
            path.map { PlaceVersion(of: $0, size: found.size, modified: found.modified) == row.version } ?? false
        case .unknown, nil: true
        }
    }

    /// This agent was late.
    private func tellFenced(_ rows: [PlaceWorkRow]) async throws(JournalError) {
        if rows.isEmpty { return }
        member.count { $0.fenced += rows.count }
        for row in rows {
            guard let job = try await journal.job(row.file) else { continue }
            let destination = row.isFinishing ? "its source" : job.deliveries.first?.destination ?? ""
            member.log.emit(.fleetFenced(path: job.file.fullPath, destination: destination))
        }
    }

    // MARK: - Leaving

    /// Work of an earlier session that did not come back: it has ended in the fleet, or is another's.
    ///
    /// - Parameter isNews: whether this process had it, and was late.
    func drop(_ rows: [PlaceWorkRow], isNews: Bool) async throws(JournalError) {
        // A source that is disposed of stays so, and a delivered file stays delivered, whoever has the work.
        let finished = try await finishedFiles(rows)
        if !finished.isEmpty { try await journal.placeWorkFinished(finished, mark: member.standing.seen) }
        let lost = rows.filter { !finished.contains($0.file) }
        if isNews { try await tellFenced(lost.filter { $0.state == .pending }) }
        leave(lost.map(\.file))
        try await removeLeaving()
    }

    private func finishedFiles(_ rows: [PlaceWorkRow]) async throws(JournalError) -> [Int64] {
        var files: [Int64] = []
        for row in rows where row.isFinishing {
            if try await journal.job(row.file)?.file.finishedAt != nil { files.append(row.file) }
        }
        return files
    }

    private func leave(_ files: [Int64]) {
        places.state.withLock { state in
            for file in files { state.work[file] = nil }
            state.leaving.formUnion(files)
        }
    }

    private func forget(_ files: [Int64]) {
        places.state.withLock { state in for file in files { state.work[file] = nil } }
    }

    /// Removes leaving files from the queue; running deliveries of theirs end first.
    func removeLeaving() async throws(JournalError) {
        let leaving = places.state.withLock(\.leaving)
        if leaving.isEmpty { return }
        var free: [Int64] = []
        for file in leaving.sorted() {
            let claimed = try await journal.job(file)?.deliveries.filter { $0.state == .claimed } ?? []
            if claimed.isEmpty { free.append(file) }
            for delivery in claimed where !shared.lanes.letGo(of: delivery.id) { shared.transfers.cancel(delivery.id) }
            if !claimed.isEmpty { shared.signals.raiseDeliverable() }
        }
        if free.isEmpty { return }
        try await journal.dropPlaceWork(free)
        places.state.withLock { $0.leaving.subtract(free) }
    }

    /// Gives work back to the fleet, which others then do.
    ///
    /// - Parameter time: as it was asked for.
    func giveBack(
        _ rows: [PlaceWorkRow], beyond time: WallTime, after pause: Duration = .zero, in session: Int64
    ) async throws {
        try await giveBack(rows, after: pause) { () throws(JournalError) in
            try await journal.waitingPlaceWork(session: session, beyond: time, limit: Self.batch)
        }
    }

    /// Gives back the disposals that are not due: an agent that is drained waits for none. It still disposes of sources
    /// that it has hidden, and others do once it is gone.
    func giveBackFinishings(in session: Int64) async throws {
        let waiting = { () async throws(JournalError) in
            try await journal.waitingFinishings(session: session, at: .now, limit: Self.batch)
        }
        try await giveBack(try await waiting(), after: .zero, waiting)
    }

    /// - Parameter waiting: asked again when nothing of the rows can begin any more.
    private func giveBack(
        _ rows: [PlaceWorkRow], after pause: Duration, _ waiting: () async throws(JournalError) -> [PlaceWorkRow]
    ) async throws {
        if rows.isEmpty { return }
        let holds = places.state.withLock { state in
            rows.map { row in (row.file, state.work.removeValue(forKey: row.file)) }
        }
        // From here on nothing of it begins. Work that began in between continues.
        let files = Set(try await waiting().map(\.file))
        places.state.withLock { state in
            for case (let file, let hold?) in holds where !files.contains(file) { state.work[file] = hold }
        }
        let due = rows.filter { files.contains($0.file) }
        if due.isEmpty { return }
        leave(due.map(\.file))
        _ = try await member.link.settleAll(
            due.map { row in
                FleetSettlement(
                    work: row.number, fence: row.fence, .retry, after: pause, code: row.code?.rawValue,
                    reason: row.reason.map { String($0.prefix(500)) })
            })
        try await removeLeaving()
    }
}

extension FleetLink {
    /// As `settle`, for any number.
    func settleAll(_ rows: [FleetSettlement]) async throws(FleetError) -> [FleetSettled] {
        var (settled, left): ([FleetSettled], ArraySlice<FleetSettlement>) = ([], rows[...])
        while !left.isEmpty {
            settled += try await settle(Array(left.prefix(500))).settled
            left = left.dropFirst(500)
        }
        return settled
    }
}
