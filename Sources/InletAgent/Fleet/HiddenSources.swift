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
    /// A finishing whose source an agent may have hidden.
    struct Source: Sendable {
        /// The number of the finishing.
        var work: Int64
        var path: FilePath
        var mark: HiddenMark
    }

    enum Finding: Sendable {
        /// It has its own name again: this is there.
        case back(ShareLook.Look)
        /// Why it stays hidden now, and until when it is not looked for again.
        case waits(String, Duration)
    }

    let member: FleetMember
    let view: FleetView
    let shares: ShareLook

    /// Until a hidden source is looked for again whose agent is there, or that cannot get its name again.
    private static let pause = Duration.seconds(600)
    /// The same where its agent may be back at any time, and dispose of it.
    static let absence = Duration.seconds(20)
    private static let soon = Duration.seconds(10)
    /// How many are looked for in one look at the share, which has to answer in time.
    private static let lookedAt = 50
    /// How many get their names again before other work has its turn.
    static let mostRenamed = 50

    /// Asked with live claims of the finishings, for sources that are not under their own names. If an agent wakes up
    /// meanwhile, both dispose of a version whose deliveries have ended, and each rename succeeds for one of them.
    ///
    /// - Returns: by the numbers of the finishings; none of sources that are not hidden.
    func find(_ sources: [Source], _ share: FleetPlaces.Share, _ session: Int64) async -> [Int64: Finding] {
        if sources.isEmpty { return [:] }
        let fleet = await view.current()
        var findings: [Int64: Finding] = [:]
        var renamed = 0
        for group in sources.groups(of: Self.lookedAt) {
            let names = group.map { FinishFolders.privateNames(of: $0.path, below: "", mark: $0.mark.text) }
            let all = Array(names.joined())
            var looks = (await shares.look(at: all, in: share.root, marker: share.marker ?? "") ?? [])[...]
            for (source, names) in zip(group, names) {
                let seen = Array(looks.prefix(names.count))
                looks = looks.dropFirst(names.count)
                guard seen.count == names.count, !seen.contains(.unknown) else {
                    findings[source.work] = .waits("\(member.name) cannot look for it", Self.soon)
                    continue
                }
                guard let place = zip(names, seen).first(where: { $0.1 != .nothing })?.0 else { continue }
                if let owner = await owner(of: source.mark, in: fleet) {
                    let why = "\(owner.name) has hidden it, and disposes of it once it is back"
                    findings[source.work] = .waits(why, owner.isAlive ? Self.pause : Self.absence)
                } else if renamed == Self.mostRenamed {
                    findings[source.work] = .waits("others get their own names again first", Self.soon)
                } else {
                    findings[source.work] = await giveBack(source, from: place, share, session)
                    renamed += 1
                }
            }
        }
        return findings
    }

    private func giveBack(
        _ source: Source, from place: FilePath, _ share: FleetPlaces.Share, _ session: Int64
    ) async -> Finding {
        guard member.grants, member.session == session else { return .waits("the session has ended", .zero) }
        guard let look = await shares.rename(place, to: source.path, in: share.root, marker: share.marker ?? "") else {
            return .waits("\(member.name) cannot give \(place.display) its own name again", Self.pause)
        }
        return .back(look)
    }

    /// The agent that still disposes of it; nil where there is none: it was retired, is not known, was away for long,
    /// or has another journal.
    private func owner(of mark: HiddenMark, in fleet: FleetMembers?) async -> FleetMembers.Returning? {
        guard mark.tag == member.identity?.tag else {
            guard let fleet else { return FleetMembers.Returning(name: "another agent", isAlive: false) }
            return fleet.returning[mark.tag]
        }
        let own = FleetMembers.Returning(name: member.name, isAlive: true)
        do throws(JournalError) {
            return try await member.journal.job(mark.file)?.file.intent == nil ? nil : own
        } catch {
            // Nothing is taken from a journal that cannot be read now.
            return own
        }
    }
}

extension HiddenSources.Source {
    /// nil where no agent has said that it hides the source.
    init?(_ claim: FleetClaim, _ path: FilePath) {
        guard let note = PlaceNotes.notes(claim.notes)[HiddenMark.note], let mark = HiddenMark(note) else { return nil }
        self.init(work: claim.work, path: path, mark: mark)
    }
}
