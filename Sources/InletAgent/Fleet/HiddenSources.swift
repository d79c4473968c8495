internal import InletCore
internal import InletFleet
internal import InletJournal
internal import SystemPackage

/// The mark in the private names of a source in a share (`FinishFolders`). It is a note of the finishing, so that a
/// successor finds what an agent has hidden.
struct HiddenMark: Sendable, Equatable {
    static let note = "hidden"

    /// Of the agent.
    let tag: String
    /// In its journal.
    let file: Int64

    var text: String { "\(tag)-\(file)" }

    init(tag: String, file: Int64) { (self.tag, self.file) = (tag, file) }

    /// nil for anything else: it becomes a part of a path.
    init?(_ note: [UInt8]) {
        let parts = String(decoding: note, as: UTF8.self).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let file = Int64(parts[1]), file > 0, parts[0].utf8.count == 6,
            parts[0].utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x32...0x37).contains($0) })
        else { return nil }
        self.init(tag: String(parts[0]), file: file)
        guard Array(text.utf8) == note else { return nil }
    }
}

/// Gives sources of a share their names again that an agent has hidden and does not come back for.
struct HiddenSources: Sendable {
    enum Finding: Sendable {
        case nothing
        /// Its own name is taken again, by this.
        case back(ShareLook.Look)
        /// Why it stays hidden now, and until when it is not looked for again.
        case waits(String, Duration)
    }

    let member: FleetMember
    let view: FleetView
    let shares: ShareLook

    /// Until a hidden source is looked for again.
    static let pause = Duration.seconds(600)
    private static let soon = Duration.seconds(10)

    /// Asked with a live claim of the finishing, for a source that is not under its own name. If its agent wakes up
    /// meanwhile, both dispose of a version whose deliveries have ended, and each rename succeeds for one of them.
    func find(
        _ claim: FleetClaim, _ path: FilePath, _ share: FleetPlaces.Share, _ session: Int64
    ) async -> Finding {
        guard let note = PlaceNotes.notes(claim.notes)[HiddenMark.note], let mark = HiddenMark(note) else {
            return .nothing
        }
        let marker = share.marker ?? ""
        let names = FinishFolders.privateNames(of: path, below: "", mark: mark.text)
        guard let looks = await shares.look(at: names, in: share.root, marker: marker), !looks.contains(.unknown) else {
            return .waits("\(member.name) cannot look for it", Self.soon)
        }
        guard let place = zip(names, looks).first(where: { $0.1 != .nothing })?.0 else { return .nothing }
        if let owner = await owner(of: mark) {
            return .waits("\(owner) has hidden it, and disposes of it once it is back", Self.pause)
        }
        guard member.grants, member.session == session else { return .waits("the session has ended", .zero) }
        guard let look = await shares.rename(place, to: path, in: share.root, marker: marker) else {
            return .waits("\(member.name) cannot give \(place.display) its own name again", Self.pause)
        }
        return .back(look)
    }

    /// The agent that still disposes of it, by name; nil where there is none: it was retired, is not known, was away
    /// for long, or has another journal.
    private func owner(of mark: HiddenMark) async -> String? {
        guard mark.tag == member.identity?.tag else {
            guard let fleet = await view.current() else { return "another agent" }
            return fleet.returning[mark.tag]
        }
        do throws(JournalError) {
            return try await member.journal.job(mark.file)?.file.intent == nil ? nil : member.name
        } catch {
            // Nothing is taken from a journal that cannot be read now.
            return member.name
        }
    }
}
