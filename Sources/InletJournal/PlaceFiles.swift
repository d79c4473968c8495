package import InletCore

/// What a report after a loss says of a version in a share.
package struct PlaceFileReport: Sendable, Equatable {
    package var version: PlaceVersion
    /// The rows that were kept with it, one for each delivery that this agent knows.
    package var rows: [[UInt8]]
    package var isFinished: Bool
}

/// What this agent knows of versions in shares: they are admitted once, whoever lists the share.
extension Journal {
    /// Which of these are known to be admitted.
    package func knownInPlace(
        _ place: String, _ versions: [PlaceVersion]
    ) async throws(JournalError) -> [Bool] { fatalError() }

    /// The fleet knows these: another agent has admitted them.
    package func keepKnownInPlace(
        _ place: String, _ versions: [PlaceVersion]
    ) async throws(JournalError) { fatalError() }

    /// Before the fleet is asked: it may admit these and its answer may be lost. `mark` nil: unconfirmed.
    ///
    /// - Parameter rows: for a report after a loss, one for each delivery.
    package func keepAdmittedInPlace(
        _ place: String, _ files: [(version: PlaceVersion, rows: [[UInt8]])], mark: Int64?
    ) async throws(JournalError) { fatalError() }

    /// Commits were lost: what only others have said may be forgotten there.
    package func forgetKnownInPlaces() async throws(JournalError) { fatalError() }

    /// What was admitted, claimed or finished here after `mark`, or is unconfirmed.
    ///
    /// - Parameter last: the version of the page before; nil begins.
    package func placeFilesToReport(
        _ place: String, after mark: Int64, from last: PlaceVersion?, limit: Int
    ) async throws(JournalError) -> [PlaceFileReport] { fatalError() }

    // MARK: - Markers

    /// The marker that a share of this name had; `isMade` is false where this agent was about to make it.
    package func placeMarker(
        _ name: String
    ) async throws(JournalError) -> (marker: String, isMade: Bool)? { fatalError() }

    package func keepPlaceMarker(
        _ name: String, _ marker: String, isMade: Bool
    ) async throws(JournalError) { fatalError() }

    /// The markers of all shares that this agent knows.
    package func placeMarkers() async throws(JournalError) -> [String: String] { fatalError() }
}
