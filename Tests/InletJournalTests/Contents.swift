import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage

/// Words for files whose contents are known.
extension FileAdmission {
    /// - Parameter content: what the file holds; equal numbers are equal contents.
    static func content(
        _ content: UInt8, _ name: String, _ rule: DuplicateRule, to destinations: [String] = ["r2"], size: Int64 = 10
    ) -> FileAdmission {
        var admission = FileAdmission.test(name, .test(size: size), to: destinations)
        admission.plan?.dedupe = rule
        admission.plan?.digests = [.content(content)]
        return admission
    }
}

extension Digest {
    static func content(_ number: UInt8) -> Digest { Digest(.sha256, [UInt8](repeating: number, count: 32)) }
}

extension Bench {
    /// Admits a file of which something is to be sent.
    func admit(_ admission: FileAdmission, at time: WallTime = start) async throws -> Int64 {
        let outcome = try await journal.admit(admission, at: time)
        guard case .admitted(let id) = outcome else { throw Unexpected(what: "\(outcome)") }
        return id
    }

    /// Claims all that is due.
    func claimAll(
        _ destinations: [String] = ["r2"], lane: Lane = .big, most: Int = 100, at time: WallTime = start
    ) async throws -> [Claim] {
        try await journal.claims(lane, rooms: destinations.map { .test($0) }, most: most, at: time)
    }

    /// Ends a claim: as a link where the content is there, else so.
    func end(_ claim: Claim, _ settlement: Settlement, at time: WallTime = start) async throws {
        let end = claim.original.map { Settlement.delivered($0.link) } ?? settlement
        _ = try await journal.exchange([EndedClaim(claim, end)], for: .none(.big), at: time)
    }

    /// Delivers `name` to `destinations`. - Returns: the job.
    @discardableResult
    func deliver(_ admission: FileAdmission) async throws -> Int64 {
        let id = try await admit(admission)
        for claim in try await claimAll(admission.steps.destinations) {
            try await end(claim, .delivered(.test(claim.delivery.key ?? "?")))
        }
        try await finishAll()
        return id
    }
}
