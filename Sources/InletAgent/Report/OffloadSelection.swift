package import Foundation
package import InletCore
package import InletJournal
internal import InletLinux

/// The files of a report on cards: those that meet every criterion.
package struct OffloadSelection: Sendable {
    /// Names, UUIDs, labels or keys of cards; empty is any.
    package var cards: [String]
    /// Only files that were admitted then or later.
    package var since: WallTime?
    /// Only files with this value of the label `project`.
    package var project: String?

    package init(cards: [String] = [], since: WallTime? = nil, project: String? = nil) {
        (self.cards, self.since, self.project) = (cards, since, project)
    }

    package var isEmpty: Bool { cards.isEmpty && since == nil && project == nil }

    /// The label by which files belong to a project.
    static let projectLabel = "project"

    /// For the report's head.
    var words: String {
        let names = cards.map { DisplayText.escape($0) }
        let parts = [
            names.isEmpty ? nil : (names.count == 1 ? "card " : "cards ") + names.joined(separator: ", "),
            since.map { "since \($0.rfc3339Seconds)" }, project.map { "project \(DisplayText.escape($0))" },
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    func accepts(_ job: Job) -> Bool {
        if job.file.state == .superseded || job.file.isUnitMarker { return false }
        if let since, job.file.admittedAt < since { return false }
        return project.map { job.file.labels[Self.projectLabel] == $0 } ?? true
    }

    /// A card that the journal does not know.
    package struct UnknownCard: Error, Sendable {
        package var name: String
    }

    /// `06:00` is the last time when it was six; `2026-11-27T06:00:00Z`; `12h` is so long ago. nil for other texts.
    package static func moment(_ text: String, at now: WallTime, zone: TimeZone = .autoupdatingCurrent) -> WallTime? {
        if let time = WallTime(rfc3339: text) { return time }
        if let age = DurationText.parse(text) { return now + (.zero - age) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
        guard (2...3).contains(parts.count), text.utf8.allSatisfy({ $0 == 0x3A || (0x30...0x39).contains($0) }),
            let hour = parts[0], let minute = parts[1], let second = parts.count == 3 ? parts[2] : 0, hour < 24,
            minute < 60, second < 60
        else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        let date = Date(timeIntervalSince1970: Double(now.milliseconds) / 1000)
        let wanted = DateComponents(hour: hour, minute: minute, second: second, nanosecond: 0)
        let found = calendar.nextDate(after: date, matching: wanted, matchingPolicy: .nextTime, direction: .backward)
        return found.map { WallTime(milliseconds: Int64($0.timeIntervalSince1970 * 1000)) }
    }
}

extension AgentControl {
    /// The report on the files of a batch.
    package func offload(_ batch: Batch) async throws(JournalError) -> OffloadReport {
        let jobs = try await journal.jobs(ofBatch: batch.id)
        return OffloadReport(batch, jobs, clips: await ClipReader.read(jobs), at: .now)
    }

    /// The report on the files of cards, or of all that came since a time.
    ///
    /// - Parameter most: with more files there is no report.
    /// - Returns: nil where there are more than `most` files, with their number.
    /// - Throws: `OffloadSelection.UnknownCard`, `JournalError`.
    package func offload(_ selection: OffloadSelection, most: Int? = nil) async throws -> (OffloadReport?, files: Int) {
        try await journal.offload(selection, most: most)
    }
}

extension Journal {
    /// More stays are not looked at.
    private static let mostInsertions = 10_000

    func offload(_ selection: OffloadSelection, most: Int? = nil) async throws -> (OffloadReport?, files: Int) {
        let insertions = try await insertions(limit: Self.mostInsertions)
        let known = OffloadReport.Card.all(insertions)
        var jobs: [Job] = []
        if selection.cards.isEmpty {
            var filter = FileFilter(limit: .max)
            filter.since = selection.since
            filter.isOnVolume = selection.project == nil
            filter.labels = selection.project.map { [OffloadSelection.projectLabel: $0] } ?? [:]
            jobs = try await self.jobs(filter)
        } else {
            var keys: Set<String> = []
            for name in selection.cards { keys.formUnion(try await self.keys(ofCard: name, insertions)) }
            for key in keys.sorted() { jobs += try await self.jobs(ofCard: key) }
        }
        jobs = jobs.filter { selection.accepts($0) }
        if let most, jobs.count > most { return (nil, jobs.count) }
        let report = OffloadReport(
            cards: known, jobs, selection: selection.words, clips: await ClipReader.read(jobs), at: .now)
        return (report, jobs.count)
    }

    /// The report on all files of one card.
    func offload(_ card: CardRow) async throws -> OffloadReport {
        let selection = OffloadSelection(cards: [card.name])
        let insertions = try await insertions(of: card.name, limit: Self.mostInsertions)
        let jobs = try await jobs(ofCard: card.key).filter { selection.accepts($0) }
        let known = OffloadReport.Card.all(insertions.filter { $0.card.key == card.key })
        return OffloadReport(
            cards: known, jobs, selection: selection.words, clips: await ClipReader.read(jobs), at: .now)
    }

    /// The keys of the cards with this name or UUID, else with this label or key.
    private func keys(ofCard name: String, _ insertions: [InsertionRow]) async throws -> Set<String> {
        let lowered = name.lowercased()
        let cards = insertions.map(\.card)
        var found = cards.filter { $0.name == name || $0.uuid?.lowercased() == lowered }
        if found.isEmpty { found = cards.filter { $0.key == name || $0.label == name } }
        if !found.isEmpty { return Set(found.map(\.key)) }
        // Cards that were there before the journal had cards.
        let keys = try await volumes().map { OffloadReport.key(of: $0) }.filter { key in
            key == name || key.split(separator: ":", maxSplits: 1).last.map { $0.lowercased() } == lowered
        }
        if keys.isEmpty { throw OffloadSelection.UnknownCard(name: name) }
        return Set(keys)
    }
}

extension OffloadReport.Card {
    /// The cards of these stays, which are ordered newest first.
    static func all(_ insertions: [InsertionRow]) -> [Self] {
        var cards: [String: Self] = [:]
        for row in insertions.reversed() {
            var card = cards[row.card.key] ?? Self(row.card)
            card.insertions.append(OffloadReport.Insertion(row))
            cards[row.card.key] = card
        }
        return Array(cards.values)
    }

    private init(_ row: CardRow) {
        self.init(name: row.name, key: row.key)
        label = row.label.map { DisplayText.escape($0) }
        (uuid, kind, first_seen) = (row.uuid, row.kind, row.firstSeen.rfc3339Seconds)
        (read_errors, slow_reads) = (row.errors.reads, row.errors.slow)
        last_read_error = row.errors.lastRead?.rfc3339Seconds
    }
}

extension OffloadReport.Insertion {
    fileprivate init(_ row: InsertionRow) {
        self.init(row.id, mount: row.mount.display, insertedAt: row.insertedAt, removedAt: row.removedAt)
        let labels = row.labels
        (roll, camera) = (labels.roll.map { DisplayText.escape($0) }, labels.camera.map { DisplayText.escape($0) })
        `operator` = labels.operator.map { DisplayText.escape($0) }
        note = labels.note.map { DisplayText.escape($0) }
        (verdict, sentence, verdict_at) = (row.verdict, row.headline, row.verdictAt?.rfc3339Seconds)
        lines = row.lines.isEmpty ? nil : row.lines.map { Line($0) }
    }
}

extension OffloadReport.Insertion.Line {
    /// The line of a destination ends with the time when that was asked.
    fileprivate init(_ line: CardLine) {
        let (text, mark) = (DisplayText.escape(line.text), ", asked ")
        let parts = text.components(separatedBy: mark)
        if parts.count > 1, let time = parts.last.flatMap({ WallTime(rfc3339: $0) }) {
            let words = text.dropFirst("at ".count).prefix { $0 != " " }
            let isWhole = text.hasPrefix("at ") && line.mark == .good
            self.init(
                parts.dropLast().joined(separator: mark), mark: line.mark.rawValue,
                destination: isWhole ? String(words) : nil, askedAt: time)
        } else {
            self.init(text, mark: line.mark.rawValue)
        }
    }
}
