internal import InletCore
internal import InletFleet
internal import InletJournal

/// Reports this agent's admissions, claims and ends in shares: nobody sends a file again, or under another key.
extension FleetRecovery {
    private static let page = 500
    /// Names are asked for with doubled numbers.
    private static let tries = 20

    /// A share as the report needs it.
    private struct Share {
        let name: String
        let marker: String
        let number: Int32
    }

    /// A row with its version, and its destination as the fleet numbers it in this session.
    fileprivate struct Row {
        let version: PlaceVersion
        var row: PlaceRow
        let destination: Int32
        let label: String
    }

    /// - Returns: how many versions were reported.
    func reportPlaces(after mark: Int64) async throws -> Int {
        // At each try: the fleet may have lost versions that only others reported before the loss.
        try await member.journal.forgetKnownInPlaces()
        var count = 0
        for (name, marker) in try await member.journal.placeMarkers() {
            let (number, known, _) = try await member.link.place(name: name, marker: marker)
            guard known == marker else {
                member.log.emit(.agentError(reason: Self.unreported(name, marker, known)))
                continue
            }
            count += try await report(Share(name: name, marker: marker, number: number), after: mark)
        }
        return count
    }

    private static func unreported(_ name: String, _ marker: String, _ known: String) -> String {
        "fleet: share '\(name)' was not reported after the loss: the fleet has another share of this name "
            + "(\(DisplayText.escape(known)), not \(marker)); its files may be sent again; rename one in watch.place"
    }

    private func report(_ share: Share, after mark: Int64) async throws -> Int {
        var (count, last) = (0, PlaceVersion?.none)
        while true {
            let files = try await member.journal.placeFilesToReport(
                share.marker, after: mark, from: last, limit: Self.page)
            try await report(files, of: share)
            count += files.count
            guard files.count == Self.page, let end = files.last else { return count }
            last = end.version
        }
    }

    /// Keys first, then their deliveries: the fleet must not give those keys to others meanwhile.
    private func report(_ files: [PlaceFileReport], of share: Share) async throws {
        var rows: [Row] = []
        for file in files { rows += try await self.rows(of: file) }
        rows = try await keep(rows, of: share)
        let finished = Set(files.filter(\.isFinished).map(\.version))
        let open = rows.filter { !finished.contains($0.version) }
        for part in Self.wholes(open) { try await member.link.againAdmitted(share.number, part.map(\.admission)) }
        if !finished.isEmpty { try await member.link.againFinished(share.number, Array(finished)) }
    }

    /// Also those for destinations that left the configuration: others may have them.
    private func rows(of file: PlaceFileReport) async throws -> [Row] {
        var rows: [Row] = []
        for note in file.rows {
            guard let row: PlaceRow = JSON.note(note) else { continue }
            let label = member.places.first { $0.value.address == row.address }?.key ?? row.address
            let number = try await member.link.destination(address: row.address, type: row.type, label: label)
            rows.append(Row(version: file.version, row: row, destination: number, label: label))
        }
        return rows
    }

    /// Says which keys these have. One that the fleet gave to another since is never sent to again: its delivery gets
    /// the next name.
    private func keep(_ rows: [Row], of share: Share) async throws -> [Row] {
        var kept: [Row] = []
        for (_, group) in Dictionary(grouping: rows, by: \.destination) {
            for part in Self.parts(group) {
                let clashes = Set(try await again(part, of: share))
                for (index, row) in part.enumerated() {
                    kept.append(clashes.contains(index) ? try await renamed(row, of: share) : row)
                }
            }
        }
        return kept
    }

    /// - Returns: the places in `rows`, all of one destination, of those whose keys are another's.
    private func again(_ rows: [Row], of share: Share) async throws -> [Int] {
        guard let destination = rows.first?.destination else { return [] }
        return try await member.link.againKeys(
            destination, rows.map(\.row.key), rows.map(\.row.ref), place: share.number)
    }

    private func renamed(_ row: Row, of share: Share) async throws -> Row {
        member.log.emit(.fleetKeyClash(destination: row.label, key: row.row.key, owner: "another agent"))
        var (renamed, number) = (row, 2)
        for _ in 0..<Self.tries {
            renamed.row.key = KeyTemplate.disambiguated(row.row.key, number: number)
            if try await again([renamed], of: share).isEmpty { return renamed }
            number *= 2
        }
        throw FleetError(.fault, "no name beside \(row.row.key) is free at \(row.label)")
    }

    /// As many as a call takes, and never a part of a version: others could settle that before the rest is known.
    private static func wholes(_ rows: [Row]) -> [[Row]] {
        Dictionary(grouping: rows, by: \.version).values.reduce(into: []) { parts, version in
            guard let last = parts.last, last.count + version.count <= batch else { return parts.append(version) }
            parts[parts.count - 1] += version
        }
    }

    /// As many as a call takes.
    private static func parts(_ rows: [Row]) -> [[Row]] {
        stride(from: 0, to: rows.count, by: batch).map { Array(rows[$0..<min($0 + batch, rows.count)]) }
    }
}

extension FleetRecovery.Row {
    fileprivate var admission: FleetWorkRow {
        FleetWorkRow(
            version: version, name: row.name, size: row.size, priority: row.plan.priority, destination: destination,
            ref: row.ref, key: row.key, plan: JSON.note(of: row.plan))
    }
}
