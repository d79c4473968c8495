package import InletCore

/// The functions of the schema for shares that several agents watch.
extension FleetLink {
    /// Makes a share known, and this agent its member where the markers are equal. - Returns: the fleet's marker.
    package func place(
        name: String, marker: String
    ) async throws(FleetError) -> (place: Int32, marker: String, isNew: Bool) { fatalError() }

    /// Asks for shares, every third of a lease. - Returns: those that are this agent's now.
    package func hold(_ places: [Int32]) async throws(FleetError) -> [FleetHold] { fatalError() }

    package func release(_ places: [Int32]) async throws(FleetError) { fatalError() }

    /// At most 1,000. - Returns: which of them were admitted before.
    package func known(_ place: Int32, _ versions: [PlaceVersion]) async throws(FleetError) -> [Bool] { fatalError() }

    /// At most 1,000 rows, all deliveries of a version in one call. - Returns: which are admitted with these keys.
    package func admit(
        _ place: Int32, fence: Int64, _ rows: [FleetWorkRow]
    ) async throws(FleetError) -> (mark: Int64, admitted: [Bool]) { fatalError() }

    /// At most 1,000. First what this agent had in an earlier session. After a failure that may have lost the answer
    /// (`.away`) the session must be renewed (`renew`): the claims come with the next.
    package func claim(_ places: [Int32], most: Int) async throws(FleetError) -> [FleetClaim] { fatalError() }

    /// At most 500. Leaves notes for a successor (nil changes none), and asks whether the claims are still this agent's.
    /// - Returns: for each: nil, or `.fenced`.
    package func note(
        _ rows: [(work: Int64, fence: Int64, notes: [UInt8]?)]
    ) async throws(FleetError) -> (mark: Int64, refused: [FleetError.Code?]) { fatalError() }

    /// At most 500.
    package func settle(
        _ rows: [FleetSettlement]
    ) async throws(FleetError) -> (mark: Int64, settled: [FleetSettled]) { fatalError() }

    /// Reserves another key for a claim, and gives it to the claim. - Returns: whether the key is free.
    package func rename(
        work: Int64, fence: Int64, to key: String
    ) async throws(FleetError) -> (mark: Int64, isGranted: Bool) { fatalError() }

    /// Says hello again: claims whose answer was lost come back with the next session.
    package func renew() { fatalError() }

    // MARK: - Reports after a restore

    /// At most 1,000 admissions or claims.
    package func againAdmitted(_ place: Int32, _ rows: [FleetWorkRow]) async throws(FleetError) { fatalError() }

    /// At most 1,000 versions whose sources are disposed of.
    package func againFinished(_ place: Int32, _ versions: [PlaceVersion]) async throws(FleetError) { fatalError() }
}
