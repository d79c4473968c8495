package import InletCore

/// Work of a share that the fleet has given this agent: a delivery with its followers, or the finishing of a source. It
/// is a row of the queue like any other, and goes with the answer that it is another's, or done.
package struct PlaceWork: Sendable {
    package var number: Int64
    package var fence: Int64
    /// The session in which it was claimed.
    package var session: Int64
    /// The marker of the share.
    package var place: String
    package var version: PlaceVersion
    package var isFinishing: Bool
    /// Of a finishing: a delivery of the version has failed.
    package var hasFailed: Bool
    /// With the identity that the file has here. Its plan has the frozen keys, and no other destinations than this
    /// work's; none for a finishing.
    package var admission: FileAdmission
    /// For the checkpoint of its first delivery.
    package var notes: [String: [UInt8]]
    /// What a report after a loss says of it; nil for a finishing.
    package var row: [UInt8]?

    package init(
        number: Int64, fence: Int64, session: Int64, place: String, version: PlaceVersion, isFinishing: Bool,
        hasFailed: Bool, admission: FileAdmission, notes: [String: [UInt8]], row: [UInt8]?
    ) {
        (self.number, self.fence, self.session, self.place) = (number, fence, session, place)
        (self.version, self.isFinishing, self.hasFailed) = (version, isFinishing, hasFailed)
        (self.admission, self.notes, self.row) = (admission, notes, row)
    }
}

/// What became of work that the fleet gave.
package enum PlaceWorkStart: Sendable, Equatable {
    /// It is in the queue, anew or from an earlier session, as this file.
    case taken(file: Int64)
    /// Another file of this journal has the key.
    case keyTaken(String)
}

/// Work of a share as the journal has it.
package struct PlaceWorkRow: Sendable, Equatable {
    package var file: Int64
    package var number: Int64
    package var fence: Int64
    package var session: Int64
    package var place: String
    package var version: PlaceVersion
    package var isFinishing: Bool
    package var size: Int64
    package var state: FileState
    package var code: ErrorCode?
    package var reason: String?
    /// When its first delivery that waits is due; nil where none waits for a time.
    package var nextAt: WallTime?
}

extension Journal {
    /// Puts work into the queue, due at once. Work of the same number continues with the new fence: its file, its notes
    /// and its proofs stay.
    package func takePlaceWork(
        _ works: [PlaceWork], at now: WallTime
    ) async throws(JournalError) -> [PlaceWorkStart] { fatalError() }

    /// Holds back all work of shares until it is claimed again: the session is over. Running deliveries go on.
    package func holdPlaceWork() async throws(JournalError) { fatalError() }

    /// All work of shares, in the order of its numbers.
    package func placeWork() async throws(JournalError) -> [PlaceWorkRow] { fatalError() }

    /// Work of this session whose deliveries have ended, and that the fleet does not know to have ended.
    package func endedPlaceWork(session: Int64, limit: Int) async throws(JournalError) -> [PlaceWorkRow] {
        fatalError()
    }

    /// Finished sources of this session that the fleet does not know to be finished.
    package func finishedPlaceWork(session: Int64, limit: Int) async throws(JournalError) -> [PlaceWorkRow] {
        fatalError()
    }

    /// Work of this session that cannot be sent before `time`: it waits for its time, or is parked. Nothing of it runs.
    package func waitingPlaceWork(
        session: Int64, beyond time: WallTime, limit: Int
    ) async throws(JournalError) -> [PlaceWorkRow] { fatalError() }

    /// The fleet knows these ends. A file with a number of finishing work is disposed of now, as failed where a delivery
    /// has failed anywhere; the source of one without is left to others.
    package func placeWorkSettled(
        _ ends: [(file: Int64, finish: Int64?, hasFailed: Bool)], mark: Int64, at now: WallTime
    ) async throws(JournalError) { fatalError() }

    /// The fleet knows that these sources are finished.
    package func placeWorkFinished(_ files: [Int64], mark: Int64) async throws(JournalError) { fatalError() }

    /// The work is another's, or goes back: nothing of it stays here, except the disposal of a source that has begun.
    package func dropPlaceWork(_ files: [Int64]) async throws(JournalError) { fatalError() }
}
