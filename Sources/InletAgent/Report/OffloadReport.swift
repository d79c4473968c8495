package import InletCore
package import InletJournal
internal import InletLinux
internal import InletMedia
internal import SystemPackage

/// The report on the files of a batch or of cards, for a person to print, sign and keep. Paths are escaped. Keys may be
/// added, never renamed.
package struct OffloadReport: Codable, Sendable {
    package struct Delivery: Codable, Sendable {
        package var destination: String
        package var state: String
        package var key: String?
        package var url: String?
        /// How the destination's copy was compared with the file.
        package var verified: String?
        package var ended_at: String?
        package var reason: String?
        /// When the destination was last asked for it, and still had it.
        package var asked_at: String?
    }

    package struct File: Codable, Sendable {
        package var job: Int64
        /// The path below the unit's folder, or on the card.
        package var path: String
        package var size: Int64
        package var modified_at: String
        package var state: String
        /// `xxh64:…`, as read from the source.
        package var digests: [String]
        package var reason: String?
        package var deliveries: [Delivery]
        /// The card's name.
        package var card: String?
        /// The number of the card's insertion that brought it.
        package var insertion: Int64?
        /// Why it may not open: look at it before the card is formatted.
        package var check: String?
        package var duration_ms: Int64?
        /// Of the first frame.
        package var timecode: String?
        package var camera: String?
        package var labels: [String: String]?
        /// JPEG pictures as `data:` URLs.
        package var first_frame: String?
        package var last_frame: String?

        /// Whether every destination of its route has it.
        package var isDelivered: Bool {
            state == FileState.delivered.rawValue || state == FileState.duplicate.rawValue
        }

        /// The files to look at come first, then the undelivered ones.
        fileprivate var rank: Int { check != nil ? 0 : isDelivered ? 2 : 1 }
    }

    package struct Insertion: Codable, Sendable {
        /// A finding of the verdict.
        package struct Line: Codable, Sendable {
            /// `good`, `waiting`, `bad` or `note`.
            package var mark: String
            package var text: String
            /// The destination that had all files of the card when it was asked.
            package var destination: String?
            package var asked_at: String?

            package init(_ text: String, mark: String, destination: String? = nil, askedAt: WallTime? = nil) {
                (self.text, self.mark, self.destination) = (text, mark, destination)
                asked_at = askedAt?.rfc3339Seconds
            }
        }

        package var insertion: Int64
        package var mount: String?
        package var inserted_at: String
        package var removed_at: String?
        package var roll: String?
        package var camera: String?
        package var `operator`: String?
        package var note: String?
        /// `safe`, `not_yet`, `call_somebody` or another word of `CardVerdict`.
        package var verdict: String?
        /// The verdict in a sentence.
        package var sentence: String?
        package var lines: [Line]?
        package var verdict_at: String?

        package init(_ number: Int64, mount: String? = nil, insertedAt: WallTime, removedAt: WallTime? = nil) {
            (insertion, self.mount) = (number, mount)
            (inserted_at, removed_at) = (insertedAt.rfc3339Seconds, removedAt?.rfc3339Seconds)
        }

        fileprivate var began: WallTime? { WallTime(rfc3339: inserted_at) }
    }

    package struct Card: Codable, Sendable {
        /// Unique among all cards, for ever.
        package var name: String
        /// Its key in the journal.
        package var key: String
        package var label: String?
        package var uuid: String?
        package var kind: String?
        package var first_seen: String?
        package var read_errors: Int?
        package var slow_reads: Int?
        package var last_read_error: String?
        /// Numbers that are missing from runs of recordings.
        package var missing: [String]?
        /// Of the report's files, oldest first.
        package var insertions: [Insertion]

        package init(name: String, key: String, insertions: [Insertion] = []) {
            (self.name, self.key, self.insertions) = (DisplayText.escape(name), DisplayText.escape(key), insertions)
        }

        /// A card of which the journal has only files.
        fileprivate init(key: String) {
            self.init(name: key.split(separator: ":", maxSplits: 1).last.map(String.init) ?? key, key: key)
        }
    }

    /// nil for a report on cards.
    package var batch: BatchReport?
    /// The folder of the files, or the names of the cards.
    package var source: String
    package var host: String
    package var printed_at: String
    /// Card by card: files to look at first, then undelivered ones, then by path.
    package var files: [File]
    /// nil for a report on a batch.
    package var cards: [Card]?
    /// The files that the report is about, in words; nil for a report on a batch.
    package var selection: String?
    /// Numbers that are missing from a batch's runs of recordings.
    package var missing: [String]?
    /// Recordings that could not be looked into: neither their source nor a copy in a folder could be read.
    package var unread: Int?

    package init(_ batch: Batch, _ jobs: [Job], clips: [Int64: ClipReading] = [:], at now: WallTime) {
        self.batch = BatchReport(batch)
        source = batch.unit.map { batch.root.pushing($0) }?.display ?? batch.root.display
        host = DisplayText.escape(ProcessSetup.hostName)
        printed_at = now.rfc3339Seconds
        let all = jobs.filter { !$0.file.isUnitMarker }.map { File($0, below: batch.unit, clips[$0.file.id]) }
        files = Self.sorted(all)
        missing = Self.gaps(all)
        unread = clips.values.contains(where: \.isUnread) ? clips.values.count(where: \.isUnread) : nil
    }

    /// - Parameters:
    ///   - known: the journal's cards, each with its insertions.
    ///   - selection: the files in words.
    package init(
        cards known: [Card], _ jobs: [Job], selection: String, clips: [Int64: ClipReading] = [:], at now: WallTime
    ) {
        host = DisplayText.escape(ProcessSetup.hostName)
        printed_at = now.rfc3339Seconds
        self.selection = selection
        var (found, numbers): ([Card], [String: Int]) = ([], [:])
        var groups: [[File]] = []
        var others: [File] = []
        for job in jobs where !job.file.isUnitMarker {
            guard let volume = job.file.volume else {
                others.append(File(job, below: nil, clips[job.file.id]))
                continue
            }
            let card = Self.card(of: volume, known)
            let number = numbers[card.key] ?? found.count
            if number == found.count {
                numbers[card.key] = number
                found.append(card)
                groups.append([])
            }
            groups[number].append(File(job, on: card, volume, clips[job.file.id]))
        }
        for (number, group) in groups.enumerated() {
            found[number].missing = Self.gaps(group)
            let brought = Set(group.compactMap(\.insertion))
            found[number].insertions.removeAll { !brought.contains($0.insertion) }
        }
        let order = found.indices.sorted { (found[$0].name, found[$0].key) < (found[$1].name, found[$1].key) }
        cards = order.map { found[$0] }
        files = order.flatMap { Self.sorted(groups[$0]) } + Self.sorted(others)
        source = order.map { found[$0].name }.joined(separator: ", ")
        unread = clips.values.contains(where: \.isUnread) ? clips.values.count(where: \.isUnread) : nil
    }

    private static func sorted(_ files: [File]) -> [File] { files.sorted { ($0.rank, $0.path) < ($1.rank, $1.path) } }

    private static func gaps(_ files: [File]) -> [String]? {
        let gaps = NumberedRun.gaps(inFolders: files.map(\.path))
        return gaps.isEmpty ? nil : gaps
    }

    /// The longest key counts: a device's name may be the beginning of another's.
    private static func card(of volume: String, _ known: [Card]) -> Card {
        let cards = known.filter { volume == $0.key || volume.hasPrefix($0.key + "/") }
        return cards.max { $0.key.count < $1.key.count } ?? Card(key: key(of: volume))
    }

    /// The part of a volume's key before the folder.
    static func key(of volume: String) -> String {
        // A device's own name has slashes.
        if volume.hasPrefix("device:") { return volume }
        return volume.split(separator: "/", maxSplits: 1).first.map(String.init) ?? volume
    }

    /// The reason of a state. It mentions an unreadable part of the record, which must not look like an unknown one.
    fileprivate static func reason(_ reason: String?, isDamaged: Bool) -> String? {
        let damage = isDamaged ? "its record in the journal is partly unreadable" : nil
        let reasons = [reason.map { DisplayText.escape($0) }, damage].compactMap(\.self)
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }
}

extension OffloadReport.File {
    fileprivate init(_ job: Job, below unit: FilePath?, _ clip: ClipReading?) {
        let file = job.file
        var below = file.path
        if let unit { _ = below.removePrefix(unit) }
        self.init(
            job: file.id, path: below.display, size: file.identity.size,
            modified_at: WallTime(nanoseconds: file.identity.modified).rfc3339Seconds, state: file.state.rawValue,
            digests: file.digests.map(\.description),
            reason: OffloadReport.reason(file.reason, isDamaged: file.isDamaged),
            deliveries: job.deliveries.filter { $0.closes == nil }.map { OffloadReport.Delivery($0) })
        labels = file.labels.isEmpty ? nil : file.labels
        check = clip?.fault
        duration_ms = clip?.facts.duration?.milliseconds
        timecode = clip?.facts.timecode
        camera = clip?.facts.camera
    }

    /// With its path on the card, from the top of its file system.
    fileprivate init(_ job: Job, on card: OffloadReport.Card, _ volume: String, _ clip: ClipReading?) {
        self.init(job, below: nil, clip)
        let folder = volume.dropFirst(card.key.count).drop { $0 == "/" }
        if !folder.isEmpty { path = DisplayText.escape(String(folder)) + "/" + path }
        self.card = card.name
        // A file that is admitted between two insertions belongs to the one before.
        let insertion = card.insertions.last { ($0.began ?? job.file.admittedAt) <= job.file.admittedAt }
        let shown = insertion ?? card.insertions.first
        self.insertion = shown?.insertion
        camera = camera ?? shown?.camera
        // Of the newest verdict that asked.
        for index in deliveries.indices where deliveries[index].state == DeliveryState.delivered.rawValue {
            let lines = card.insertions.reversed().lazy.flatMap { $0.lines ?? [] }
            deliveries[index].asked_at =
                lines.first { line in
                    line.destination == deliveries[index].destination && line.asked_at != nil
                }?.asked_at
        }
    }
}

extension OffloadReport.File {
    /// When its destination had all files of the card, after this one had arrived there. `lines` are ordered newest
    /// first.
    private func asked(_ delivery: OffloadReport.Delivery, _ lines: [OffloadReport.Insertion.Line]) -> String? {
        lines.first { line in
            guard line.destination == delivery.destination, let asked = line.asked_at.flatMap({ WallTime(rfc3339: $0) })
            else { return false }
            return delivery.ended_at.flatMap { WallTime(rfc3339: $0) }.map { $0 <= asked } ?? false
        }?.asked_at
    }
}

extension OffloadReport.Delivery {
    fileprivate init(_ row: DeliveryRow) {
        self.init(
            destination: row.destination, state: row.state.rawValue,
            key: (row.proof?.key ?? row.key).map { DisplayText.escape($0) },
            url: row.proof?.url.map { DisplayText.escape($0) }, verified: row.proof?.method.rawValue,
            ended_at: row.endedAt?.rfc3339Seconds,
            reason: OffloadReport.reason(row.reason, isDamaged: row.isDamaged), asked_at: nil)
    }
}

// MARK: - For the forms that people read

extension OffloadReport {
    /// The files of a batch, or of one card.
    struct Group {
        /// nil for a batch, and for files that are on no card.
        var card: Card?
        var files: [File]
        var missing: [String]

        var unclear: [File] { files.filter { $0.check != nil } }
        var undelivered: [File] { files.filter { $0.check == nil && !$0.isDelivered } }
        var delivered: [File] { files.filter { $0.check == nil && $0.isDelivered } }
    }

    var groups: [Group] {
        guard let cards else { return [Group(card: nil, files: files, missing: missing ?? [])] }
        let parts = cards.map { card in
            Group(card: card, files: files.filter { $0.card == card.name }, missing: card.missing ?? [])
        }
        let others = files.filter { $0.card == nil }
        return parts + (others.isEmpty ? [] : [Group(card: nil, files: others, missing: [])])
    }

    /// The batch's name, or the cards'.
    package var name: String {
        if let batch { return batch.name }
        let names = (cards ?? []).map(\.name)
        if names.isEmpty { return selection ?? "" }
        return names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
    }

    /// The numbers of files and bytes, in all and delivered.
    static func totals(
        _ files: [File]
    ) -> (files: Int, bytes: Int64, deliveredFiles: Int, deliveredBytes: Int64) {
        let delivered = files.filter(\.isDelivered)
        return (
            files.count, files.reduce(0) { $0 + $1.size }, delivered.count, delivered.reduce(0) { $0 + $1.size }
        )
    }

    package var totals: (files: Int, bytes: Int64, deliveredFiles: Int, deliveredBytes: Int64) { Self.totals(files) }

    /// The lines of the head: a label and its value.
    func head(_ style: ReportStyle) -> [(String, String)] {
        guard let batch else { return cardsHead(style) }
        let counts = batch.files.sorted { $0.key < $1.key }.map { "\(style.number($0.value)) \($0.key)" }.joined(
            separator: ", ")
        return [
            ("Batch", "\(batch.batch)"), ("State", batch.state), ("Source", source), ("Route", batch.route),
            ("Begun", style.time(batch.created_at)),
            ("Complete", batch.closed_at.map(style.time) ?? "not yet"),
            ("Ended", batch.ended_at.map(style.time) ?? "not yet"), ("Host", host),
            ("Files", counts.isEmpty ? "none" : counts),
            ("Printed", style.time(printed_at)),
        ]
    }

    private func cardsHead(_ style: ReportStyle) -> [(String, String)] {
        let operators = Set((cards ?? []).flatMap { $0.insertions.compactMap(\.operator) }).sorted()
        let lines: [(String, String?)] = [
            ("Selected", selection), ("Cards", source.isEmpty ? nil : source),
            ("Operator", operators.isEmpty ? nil : operators.joined(separator: ", ")), ("Host", host),
            ("Printed", style.time(printed_at)),
        ]
        return lines.compactMap { label, text in text.map { (label, $0) } }
    }

    /// The facts about a card.
    static func head(of card: Card, _ style: ReportStyle) -> [(String, String)] {
        let names = [card.label.map { "label \($0)" }, card.uuid.map { "UUID \($0)" }, card.kind].compactMap(\.self)
        var lines = names.isEmpty ? [("Volume", card.key)] : [("Volume", names.joined(separator: " · "))]
        if let errors = card.read_errors, errors > 0 {
            lines.append(
                ("Read errors", style.number(errors) + (card.last_read_error.map { ", last \(style.time($0))" } ?? "")))
        }
        for insertion in card.insertions {
            let times = [
                style.time(insertion.inserted_at), insertion.removed_at.map { "removed \(style.time($0))" },
                insertion.mount,
            ]
            lines.append(("Inserted", times.compactMap(\.self).joined(separator: " · ")))
            let labels = [
                ("Roll", insertion.roll), ("Camera", insertion.camera), ("Operator", insertion.operator),
                ("Note", insertion.note),
            ]
            lines += labels.compactMap { label, text in text.map { (label, $0) } }
            if let sentence = insertion.sentence {
                lines.append(("Verdict", sentence + (insertion.verdict_at.map { " (\(style.time($0)))" } ?? "")))
            }
            lines += (insertion.lines ?? []).map { line in
                ("", line.text + (line.asked_at.map { ", asked \(style.time($0))" } ?? ""))
            }
        }
        return lines
    }

    /// The summary in a sentence.
    static func sum(_ files: [File], _ style: ReportStyle) -> String {
        let totals = totals(files)
        let length = files.reduce(0) { $0 + ($1.duration_ms ?? 0) }
        return "\(style.number(totals.deliveredFiles)) of \(style.number(totals.files)) files delivered, "
            + "\(style.size(totals.deliveredBytes)) of \(style.size(totals.bytes)) "
            + "(\(style.number(totals.deliveredBytes)) of \(style.number(totals.bytes)) bytes)"
            + (length > 0 ? ", \(Self.length(length)) of recordings" : "")
    }

    /// Whole seconds; recordings below 10 s with a fraction.
    static func length(_ milliseconds: Int64) -> String {
        let rest = milliseconds < 10_000 ? 0 : milliseconds % 1000
        return DurationText.format(.milliseconds(milliseconds - rest))
    }

    static let advice = "CHECK BEFORE YOU FORMAT"

    /// The recordings of which nothing is known, in a sentence; nil when there are none.
    func doubt(_ style: ReportStyle) -> String? {
        unread.map {
            "\(style.number($0)) \($0 == 1 ? "recording was" : "recordings were") not looked into: "
                + "neither the source nor a copy in a folder could be read"
        }
    }

    static let signers = ["Offloaded by", "Checked by"]
}

extension OffloadReport.File {
    /// Facts from the file's headers, and the camera that a person named.
    var facts: String {
        [duration_ms.map { OffloadReport.length($0) }, timecode.map { "TC \($0)" }, camera].compactMap(\.self)
            .joined(separator: " · ")
    }
}

extension OffloadReport.Delivery {
    /// How its copy was proved: only bytes that were read back, or a confirmed checksum, are a proof.
    var comparison: String? {
        switch verified.flatMap({ Proof.Method(rawValue: $0) }) {
        case .size: "copied, sizes equal, not verified"
        case .adopted: "adopted, not verified"
        default: verified.map { "verified by \($0)" }
        }
    }

    var place: String { url ?? key ?? "" }
}
