package import InletCore
package import InletJournal

extension Journal {
    /// Claims the delivery that is due first in `lane`, hands it to `body`, and settles it as that says: the exchanges of a lane,
    /// one claim at a time. If `body` throws, the claim goes back to the queue uncounted.
    /// - Returns: nil when nothing is due within the given room.
    package func withClaim<Result: Sendable>(
        _ lane: Lane, rooms: [ClaimCapacity], clock: @Sendable () -> WallTime, ending: EndingRule? = nil,
        _ body: (Claim) async throws -> (ClaimOutcome, Result)
    ) async throws -> (SettledFile, Result)? {
        guard let claim = try await claims(lane, rooms: rooms, most: 1, at: clock()).first else { return nil }
        let settlement: ClaimOutcome
        let result: Result
        do {
            (settlement, result) = try await body(claim)
        } catch {
            let back = ClaimOutcome.again(at: clock(), countsAttempt: false, code: nil, reason: nil)
            // The error at hand is the one that is told; a claim that cannot go back is left to the next start.
            _ = try? await settle((claim.delivery.id, back), lane, ending, clock)
            throw error
        }
        return (try await settle((claim.delivery.id, settlement), lane, ending, clock), result)
    }

    private func settle(
        _ ended: EndedClaim, _ lane: Lane, _ ending: EndingRule?, _ clock: @Sendable () -> WallTime
    ) async throws -> SettledFile {
        try await exchange([ended], for: .none(lane), ending: ending, at: clock()).settled[0]
    }

    /// Claims what is due in `lane`, room by room, until there are `most`. - Returns: in the order in which they were due.
    package func claims(_ lane: Lane, rooms: [ClaimCapacity], most: Int, at now: WallTime) async throws -> [Claim] {
        var claims: [Claim] = []
        for room in rooms where claims.count < most {
            let request = ClaimRequest(lane: lane, room: room, most: most - claims.count)
            claims += try await exchange([], for: request, at: now).claims
        }
        return claims.sorted {
            let (one, other) = ($0.delivery, $1.delivery)
            return (one.priority.rank, one.nextAt, one.id) < (other.priority.rank, other.nextAt, other.id)
        }
    }

    /// When the next delivery in `lane` is due that `rooms` have a place for.
    package func nextDue(_ lane: Lane, rooms: [ClaimCapacity]) async throws -> WallTime? {
        var times: [WallTime] = []
        for room in rooms {
            let request = ClaimRequest(lane: lane, room: room, most: 0)
            if let time = try await exchange([], for: request, at: WallTime(milliseconds: 0)).nextDue {
                times.append(time)
            }
        }
        return times.min()
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
