internal import FoundationEssentials
package import InletCore

/// The functions of the schema for shares that several agents watch.
extension FleetLink {
    /// Makes a share known, and this agent its member where the markers are equal. - Returns: the fleet's marker.
    package func place(
        name: String, marker: String
    ) async throws(FleetError) -> (place: Int32, marker: String, isNew: Bool) {
        let answer = try await call(.place, [.text(name), .text(marker)]).answer
        return (try answer.number(0), try answer.text(1), try answer.text(2) == "t")
    }

    /// Asks for shares, every third of a lease. - Returns: those that are this agent's now.
    package func hold(_ places: [Int32]) async throws(FleetError) -> [FleetHold] {
        let answer = try await call(.hold, [Self.numbers(places)]).answer
        return try answer.each { (row, rows) throws(FleetError) in
            guard let place = rows.integer(row, 0), let fence = rows.integer(row, 1) else {
                throw answer.unfit("a share and its fence", 0)
            }
            return FleetHold(
                place: Int32(truncatingIfNeeded: place), fence: fence, isTaken: rows.boolean(row, 2) == true)
        }
    }

    package func release(_ places: [Int32]) async throws(FleetError) {
        _ = try await call(.release, [Self.numbers(places)])
    }

    /// At most 1,000. - Returns: which of them were admitted before.
    package func known(_ place: Int32, _ versions: [PlaceVersion]) async throws(FleetError) -> [Bool] {
        let answer = try await call(.known, Self.values(place, versions)).answer
        let known = answer.rows.count > 0 ? answer.rows.booleans(0, 0) : []
        guard known.count == versions.count else { throw answer.unfit("an answer for each version", 0) }
        return known
    }

    /// At most 1,000 versions that this agent knows from before the folder was a share.
    ///
    /// - Parameter are: false where it no longer knows them, and has sent nothing of them.
    /// - Returns: which are its own: no other agent has work of them.
    package func ownVersions(
        _ place: Int32, _ versions: [PlaceVersion], are: Bool = true
    ) async throws(FleetError) -> (mark: Int64, own: [Bool]) {
        let (answer, mark) = try await marked(.ownVersions, Self.values(place, versions) + [.boolean(are)])
        let own = answer.rows.booleans(0, 1)
        guard own.count == versions.count else { throw answer.unfit("an answer for each version", 1) }
        return (mark, own)
    }

    /// At most 1,000 rows, all deliveries of a version in one call. - Returns: which are admitted with these keys.
    package func admit(
        _ place: Int32, fence: Int64, _ rows: [FleetWorkRow]
    ) async throws(FleetError) -> (mark: Int64, admitted: [Bool]) {
        let values: [PostgresValue] = [.integer(Int64(place)), .integer(fence), Self.rows(rows.map(\.json))]
        let (answer, mark) = try await marked(.admit, values)
        let admitted = answer.rows.booleans(0, 1)
        guard admitted.count == rows.count else { throw answer.unfit("an answer for each row", 1) }
        return (mark, admitted)
    }

    /// At most 1,000, in the order of their numbers. First what this agent had in an earlier session; while it is
    /// draining nothing else. After a failure that may have lost the answer (`.away`) the session must be renewed
    /// (`renew`): the claims come with the next.
    package func claim(_ places: [Int32], most: Int) async throws(FleetError) -> [FleetClaim] {
        let answer = try await call(.claim, [Self.numbers(places), .integer(Int64(most))]).answer
        let claims = try answer.each { (row, rows) throws(FleetError) in
            guard let claim = FleetClaim(rows, row) else { throw answer.unfit("a whole claim", 0) }
            return claim
        }
        return claims.sorted { $0.work < $1.work }
    }

    /// At most 500. Leaves notes for a successor (nil changes none), and asks whether the claims are still this agent's.
    /// - Returns: for each: nil, or `.fenced`.
    package func note(
        _ rows: [(work: Int64, fence: Int64, notes: [UInt8]?)]
    ) async throws(FleetError) -> (mark: Int64, refused: [FleetError.Code?]) {
        guard !rows.isEmpty else { return (standing.seen, []) }
        let said = rows.map { row in
            #"{"work":\#(row.work),"fence":\#(row.fence),"notes":\#(row.notes.map(Self.string) ?? "null")}"#
        }
        let (answer, mark) = try await marked(.note, [Self.rows(said)])
        guard answer.rows.count == rows.count else { throw answer.unfit("an answer for each claim", 1) }
        return (mark, rows.indices.map { answer.refusal($0, 1) })
    }

    /// At most 500.
    package func settle(
        _ rows: [FleetSettlement]
    ) async throws(FleetError) -> (mark: Int64, settled: [FleetSettled]) {
        guard !rows.isEmpty else { return (standing.seen, []) }
        let (answer, mark) = try await marked(.settle, [Self.rows(rows.map(\.json))])
        guard answer.rows.count == rows.count else { throw answer.unfit("an answer for each claim", 1) }
        let settled = rows.indices.map { row in
            FleetSettled(
                refused: answer.refusal(row, 1), finish: answer.rows.integer(row, 2),
                hasFailed: answer.rows.boolean(row, 3) == true)
        }
        return (mark, settled)
    }

    /// Reserves another key for a claim, and gives it to the claim, whose notes go. - Returns: whether the key is free.
    package func rename(
        work: Int64, fence: Int64, to key: String
    ) async throws(FleetError) -> (mark: Int64, isGranted: Bool) {
        let (answer, mark) = try await marked(.rename, [.integer(work), .integer(fence), .text(key)])
        return (mark, try answer.text(1) == "t")
    }

    // MARK: - Reports after a restore

    /// At most 1,000 admissions or claims.
    package func againAdmitted(_ place: Int32, _ rows: [FleetWorkRow]) async throws(FleetError) {
        _ = try await call(.againAdmitted, [.integer(Int64(place)), Self.rows(rows.map(\.json))])
    }

    /// At most 1,000 versions whose sources are disposed of.
    package func againFinished(_ place: Int32, _ versions: [PlaceVersion]) async throws(FleetError) {
        _ = try await call(.againFinished, Self.values(place, versions))
    }

    // MARK: - Values

    private static func numbers(_ places: [Int32]) -> PostgresValue { .integers(places.map { Int64($0) }) }

    private static func values(_ place: Int32, _ versions: [PlaceVersion]) -> [PostgresValue] {
        [.integer(Int64(place)), .uuids(versions.map(\.path)), .uuids(versions.map(\.version))]
    }

    private static func rows(_ rows: [String]) -> PostgresValue { .text("[\(rows.joined(separator: ","))]") }

    private static func string(_ json: [UInt8]) -> String { String(decoding: json, as: UTF8.self) }
}

extension FleetWorkRow {
    /// As `v1_admit` takes it. The plan is JSON already.
    fileprivate var json: String {
        """
        {"path":"\(version.path)","version":"\(version.version)","name":"\(Data(name).base64EncodedString())",\
        "size":\(size),"priority":\(priority),"destination":\(destination),"ref":\(ref),\
        "key":\(JSONString.quote(key)),"plan":\(String(decoding: plan, as: UTF8.self))}
        """
    }
}

extension FleetSettlement {
    /// As `v1_settle_many` takes it.
    fileprivate var json: String {
        let wait = max(0, after / .milliseconds(1)).rounded(.up)
        return """
            {"work":\(work),"fence":\(fence),"outcome":"\(outcome.rawValue)","after_ms":\(Int64(wait)),\
            "code":\(code.map(JSONString.quote) ?? "null"),"reason":\(reason.map(JSONString.quote) ?? "null")}
            """
    }
}

extension FleetClaim {
    /// nil where the answer is not as the schema promises. The columns are those of `FleetFunction.claim`.
    fileprivate init?(_ rows: PostgresRows, _ row: Int) {
        guard let work = rows.integer(row, 0), let fence = rows.integer(row, 1), let place = rows.integer(row, 2),
            let path = rows[row, 4], let version = rows[row, 5], let name = rows.bytes(row, 8),
            let size = rows.integer(row, 9)
        else { return nil }
        (self.work, self.fence, self.place) = (work, fence, Int32(truncatingIfNeeded: place))
        isFinishing = rows[row, 3] == "f"
        hasFailed = isFinishing && rows[row, 13] == "failed"
        self.version = PlaceVersion(path: path, version: version)
        destination = rows.integer(row, 6).map { Int32(truncatingIfNeeded: $0) }
        (key, self.name, self.size) = (rows[row, 7], name, size)
        plan = Array((rows[row, 10] ?? "{}").utf8)
        notes = rows[row, 11].map { Array($0.utf8) }
        takenFrom = rows.integer(row, 12).map { Int32(truncatingIfNeeded: $0) }
    }
}

extension FleetAnswer {
    fileprivate func each<Value>(
        _ body: (Int, PostgresRows) throws(FleetError) -> Value
    ) throws(FleetError) -> [Value] {
        var values: [Value] = []
        for row in 0..<rows.count { values.append(try body(row, rows)) }
        return values
    }

    /// nil: the row was carried out. A code that this version does not know is a refusal, too.
    fileprivate func refusal(_ row: Int, _ column: Int) -> FleetError.Code? {
        rows[row, column].map { FleetError.Code(rawValue: $0) ?? .fault }
    }
}
