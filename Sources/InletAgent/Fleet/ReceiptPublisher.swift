internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux

/// Publishes the journal's receipts, in the order of their numbers, for the fleet's search. The server skips those that
/// it had, and the journal keeps how far it is: none is missing, and none is there twice.
struct ReceiptPublisher: Sendable {
    let member: FleetMember
    let contents: FleetContents

    static let batch = 500
    /// Files end by thousands: their receipts wait a moment for each other.
    private static let gathering = Duration.milliseconds(500)

    func run() async {
        let signals = member.signals
        let end = member.log.listen { event in
            if case .jobFinished = event { signals.raise(.fleet(.receipts)) }
        }
        defer { end() }
        await signals[.fleet(.receipts)].loop {
            guard await Task.rest(for: Self.gathering) else { return nil }
            do {
                return try await pass() ? .now : nil
            } catch let error as FleetError {
                await note()
                // One that the schema refuses would be refused each time: looked at again by a later version.
                let isHopeless = error.code == .argument || error.code == .fault
                if isHopeless { member.log.emit(.agentError(reason: "fleet: receipts are not published: \(error)")) }
                return .now.advanced(by: isHopeless ? .seconds(600) : FleetMember.pause)
            } catch {
                // The services that use the journal all the time report its failure.
                return .now.advanced(by: FleetMember.pause)
            }
        }
    }

    /// Publishes a batch. Contents come first: the cursor passes a receipt only when both are up.
    ///
    /// - Returns: whether there may be more.
    private func pass() async throws -> Bool {
        guard member.grants else {
            await note()
            return false
        }
        let rows = try await member.journal.fleetReceipts(
            after: try await member.journal.fleetCursor(), limit: Self.batch)
        guard let last = rows.last else {
            member.count { $0.receiptsBehind = 0 }
            return false
        }
        try await publishContents(of: rows, isAgain: false)
        if member.settings.receipts {
            var receipts: [FleetReceipt] = []
            for row in rows { receipts.append(try await receipt(row)) }
            _ = try await member.link.receipts(receipts)
        }
        try await member.journal.keepFleetCursor(last.id)
        return true
    }

    private func publishContents(of rows: [PublishedReceipt], isAgain: Bool) async throws {
        let files = Set(rows.map(\.file))
        for job in try await member.journal.jobs(files.sorted(), while: { _ in true }).compactMap(\.self) {
            try await contents.publish(job, isAgain: isAgain)
        }
    }

    private func receipt(_ row: PublishedReceipt) async throws -> FleetReceipt {
        var number: Int32?
        if let name = row.destination, member.places[name] != nil { number = try await member.number(of: name) }
        let labels = row.labels.map { ($0.withoutNUL, $1.withoutNUL) }
        return FleetReceipt(
            seq: row.id, destination: number, size: row.size, state: row.state, root: row.root.display,
            path: row.path.display, mtime: row.modified.milliseconds &* 1_000_000, key: row.key?.withoutNUL,
            url: row.url?.withoutNUL, sha256: row.sha256?.hex, labels: Dictionary(labels) { first, _ in first })
    }

    /// How many wait, while they cannot be published; at most a batch is counted.
    private func note() async {
        // Without an answer the last count stays.
        guard let cursor = try? await member.journal.fleetCursor(),
            let rows = try? await member.journal.fleetReceipts(after: cursor, limit: Self.batch)
        else { return }
        member.count { $0.receiptsBehind = rows.count }
    }

    // MARK: - After a loss

    /// The database may have lost receipts and contents: says again all contents since the last receipt that it has,
    /// and publishes from there on.
    func beginAgain(after last: Int64) async throws {
        let cursor = try await member.journal.fleetCursor()
        guard last < cursor else { return }
        var from = last
        while true {
            let rows = try await member.journal.fleetReceipts(after: from, limit: Self.batch)
            guard let end = rows.last else { break }
            try await publishContents(of: rows, isAgain: true)
            from = end.id
        }
        try await member.journal.keepFleetCursor(last)
        member.signals.raise(.fleet(.receipts))
    }
}

extension String {
    /// PostgreSQL's texts have no NUL. An address of a server's answer, or a label, that has one must not hold up all
    /// other receipts.
    var withoutNUL: String { replacing("\0", with: "\u{FFFD}") }
}
