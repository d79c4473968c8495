internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Answers deliveries and disposals that ask about the work of shares. `PlaceWorker` claims it, and says how it ended.
extension FleetPlaces {
    // MARK: - Sending

    func maySend(_ file: FileRow) -> Bool { !file.policy.isOfPlace || hold(of: file.id) != nil }

    func noted(
        _ claim: Claim, _ notes: [String: [UInt8]], replacing: Bool
    ) async throws(DeliveryError) {
        let file = claim.file
        guard file.policy.isOfPlace else { return }
        guard let hold = hold(of: file.id) else { throw .awaitsFleet }
        let pipeline = state.withLock(\.destinations)?[claim.delivery.destination]?.pipeline
        do throws(FleetError) {
            try await self.notes.say(
                PlaceNotes.Change(
                    file: file.id, delivery: claim.delivery.id, notes: notes, isReplacing: replacing,
                    isAsked: notes[CheckpointName.mayBeVisible] != nil),
                of: hold, before: { journal.seal.opened(claim.checkpoint) }, shown: { pipeline?.handedOver($0) ?? [:] })
        } catch {
            throw refused(claim, hold, error)
        }
        // The answer may have taken longer than the lease.
        if self.hold(of: file.id) != hold { throw .awaitsFleet }
    }

    private func refused(_ claim: Claim, _ hold: Hold, _ error: FleetError) -> DeliveryError {
        guard error.code == .fenced else {
            return DeliveryError(.outage(after: nil), .fleetAway, "waits: \(member.sentence(error))")
        }
        lose(claim.file, hold, for: claim.delivery.destination)
        return DeliveryError(.cancelled, .cancelled, "another agent of the fleet has taken it over")
    }

    /// Another agent has the work.
    private func lose(_ file: FileRow, _ hold: Hold, for destination: String) {
        let isNews = state.withLock { state in
            guard state.work[file.id] == hold else { return false }
            state.work[file.id] = nil
            state.leaving.insert(file.id)
            return true
        }
        guard isNews else { return }
        member.count { $0.fenced += 1 }
        member.log.emit(.fleetFenced(path: file.fullPath, destination: destination))
        member.signals.raise(.fleet(.work))
    }

    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome? {
        let (file, delivery) = (claim.file, claim.delivery)
        guard file.policy.isOfPlace, error.code == .destinationExists, delivery.state == .claimed,
            delivery.afterID == nil, let key = delivery.key, let hold = hold(of: file.id)
        else { return nil }
        do throws(FleetError) {
            guard let name = try await renamer.next(after: key, of: claim, hold, member.link) else { return nil }
            member.count { $0.lost += 1 }
            return .renamed(reason: error.reason, key: name)
        } catch {
            if error.code == .fenced { lose(file, hold, for: delivery.destination) }
            let reason = "waits for another name: \(member.sentence(error))"
            return .again(at: .now + Self.pause, countsAttempt: false, code: .fleetAway, reason: reason)
        }
    }

    /// Before a delivery that the fleet withholds is looked at again.
    static let pause = Duration.seconds(1)

    func ended(_ file: FileRow) {
        guard file.policy.isOfPlace else { return ownEnded(file) }
        notes.forget(file.id)
        member.signals.raise(.fleet(.work))
    }

    // MARK: - Disposing

    func disposal(of file: FileRow) async -> DisposalRight {
        // A disposal that has begun is completed, whoever has the work: the file's identity guards it.
        if file.intent != nil { return .granted }
        guard file.policy.isOfPlace else { return await disposalOfOwn(file) }
        guard let hold = hold(of: file.id), hold.isFinishing else { return await disposalWithoutHold(file) }
        let stays = FinishAction(file) == .keep
        do throws(FleetError) {
            let mark = hold.isReplaced || stays ? nil : hiddenMark(of: file)
            try await notes.ask(hold, showing: mark.map { [HiddenMark.note: Array($0.text.utf8)] })
        } catch {
            guard error.code == .fenced else { return .unknown(member.sentence(error)) }
            lose(file, hold, for: "its source")
            return .left(Self.others)
        }
        if self.hold(of: file.id) != hold { return .unknown("its lease has ended") }
        guard hold.isReplaced else { return .granted }
        if !stays { tellReplaced(file, in: hold.root) }
        return .left(Self.renumbered)
    }

    /// Once a share: where machines see other inodes, all sources look so.
    private func tellReplaced(_ file: FileRow, in root: FilePath) {
        let place = state.withLock { $0.replaced.insert(root).inserted ? $0.shares[root]?.name : nil }
        if let place { member.log.emit(.fleetSourceLeft(place: place, path: file.fullPath)) }
    }

    private static let others = "another agent of the fleet disposes of it"
    /// Size and mtime are those of the version, and nothing tells its content.
    private static let renumbered =
        "it was replaced, or the share shows its inode otherwise than when it was admitted; compare it with the "
        + "delivered file, and remove it yourself"

    /// Under which others find the source once it is hidden.
    private func hiddenMark(of file: FileRow) -> HiddenMark? {
        member.identity.map { HiddenMark(tag: $0.tag, file: file.id) }
    }

    private func disposalWithoutHold(_ file: FileRow) async -> DisposalRight {
        do throws(JournalError) {
            let isKnown = try await journal.placeWork().contains { $0.file == file.id }
            return isKnown ? .unknown("waits: the fleet does not say now whose it is") : .left(Self.others)
        } catch {
            return .unknown("the journal does not answer: \(error)")
        }
    }

    func finished(_ file: FileRow) {
        if file.policy.isOfPlace { member.signals.raise(.fleet(.work)) }
    }

    /// Whether it has no work of shares: nothing to send, to settle or to dispose of.
    var isIdle: Bool { state.withLock { $0.work.isEmpty && $0.leaving.isEmpty } }

    /// Agents number their files alike: in a share, hidden names have its tag: `HiddenMark`.
    func mark(in root: FilePath) -> String {
        share(root) == nil ? "" : member.identity.map { "\($0.tag)-" } ?? ""
    }
}

extension DeliveryError {
    /// The claim is not known to be this agent's now.
    static let awaitsFleet = DeliveryError(
        .outage(after: nil), .fleetAway, "waits: the fleet does not say now whose work it is")
}

/// Names for deliveries whose key has another file at the destination.
final class PlaceRenamer: Sendable {
    /// The first key of each delivery that lost one, and how many names were tried.
    private let tried = Mutex<[Int64: (key: String, count: Int)]>([:])
    private static let mostRemembered = 10_000
    /// A store that has something under so many names refuses them for another reason. Names double their distance.
    private static let most = 20

    /// The next name that no other agent has; nil after too many.
    func next(
        after key: String, of claim: Claim, _ hold: FleetPlaces.Hold, _ link: FleetLink
    ) async throws(FleetError) -> String? {
        let id = claim.delivery.id
        let (first, before) = tried.withLock { tried in
            if tried.count >= Self.mostRemembered { tried = [:] }
            return tried[id] ?? (key, 0)
        }
        var count = before
        while count < Self.most {
            count += 1
            let name = KeyTemplate.disambiguated(first, number: count < 3 ? count + 1 : 1 << (count - 1))
            let isGranted = try await link.rename(work: hold.work, fence: hold.fence, to: name).isGranted
            tried.withLock { [first, count] in $0[id] = (first, count) }
            if isGranted { return name }
        }
        return nil
    }
}
