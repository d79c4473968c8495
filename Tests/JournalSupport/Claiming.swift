package import InletCore
package import InletJournal

extension Journal {
    /// Claims the delivery that is due first in `lane`, hands it to `body`, and settles it as that says: the exchanges of a lane,
    /// one claim at a time. If `body` throws, the claim goes back to the queue uncounted.
    ///
    /// What the journal refuses is offered again every second, until the task is cancelled.
    /// - Returns: nil when nothing is due within the given room.
    package func withClaim<Result: Sendable>(
        _ lane: Lane, rooms: [ClaimRoom], clock: @Sendable () -> WallTime, ending: EndingRule? = nil,
        _ body: (Claim) async throws -> (Settlement, Result)
    ) async throws -> (SettledFile, Result)? {
        let wish = ClaimWish(lane: lane, rooms: rooms, most: 1)
        guard let claim = try await exchange([], for: wish, at: clock()).claims.first else { return nil }
        let settlement: Settlement
        let result: Result
        do {
            (settlement, result) = try await body(claim)
        } catch {
            let back = Settlement.again(at: clock(), countsAttempt: false, code: nil, reason: nil)
            // The error at hand is the one that is told; a claim that cannot go back is left to the next start.
            _ = try? await settle(EndedClaim(claim, back), lane, ending, clock)
            throw error
        }
        return (try await settle(EndedClaim(claim, settlement), lane, ending, clock), result)
    }

    private func settle(
        _ ended: EndedClaim, _ lane: Lane, _ ending: EndingRule?, _ clock: @Sendable () -> WallTime
    ) async throws -> SettledFile {
        while true {
            do {
                return try await exchange([ended], for: .none(lane), ending: ending, at: clock()).settled[0]
            } catch {
                if Task.isCancelled { throw error }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// When the next delivery in `lane` is due that `rooms` have a place for.
    package func nextDue(_ lane: Lane, rooms: [ClaimRoom]) async throws -> WallTime? {
        try await exchange([], for: ClaimWish(lane: lane, rooms: rooms, most: 0), at: WallTime(milliseconds: 0)).nextDue
    }

    /// Admits one file, with its companions.
    package func admitSet(_ admission: FileAdmission, at now: WallTime) async throws(JournalError) -> AdmittedFile {
        try await admit([admission], at: now)[0]
    }

    /// Admits one file.
    package func admit(_ admission: FileAdmission, at now: WallTime) async throws(JournalError) -> AdmissionOutcome {
        try await admitSet(admission, at: now).main
    }
}
