internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Puts claims of shares into this agent's queue: each with the source as it is here, for the destinations as they are
/// called here.
struct PlaceIntake: Sendable {
    /// Work that is in the queue now.
    struct Taken: Sendable {
        var work: PlaceWork
        var file: Int64
        /// The share's name.
        var share: String
        /// The agent that had it, and is gone.
        var from: Int32?
        /// Whether the queue did not have it before.
        var isNew: Bool
    }

    /// A claim that this agent does.
    private struct Kept {
        var claim: FleetClaim
        var share: String
        var work: PlaceWork
        var hold: FleetPlaces.Hold
    }

    private enum Verdict {
        case take(PlaceWork, isReplaced: Bool)
        case back(FleetSettlement)
    }

    let places: FleetPlaces
    let shared: Shared
    let shares: ShareLook
    private let hidden: HiddenSources

    /// Before others claim it, or this agent again. Other work comes first meanwhile.
    static let soon = Duration.seconds(10)
    private static let later = Duration.seconds(30)

    init(_ places: FleetPlaces, _ shared: Shared, _ shares: ShareLook, _ view: FleetView) {
        (self.places, self.shared, self.shares) = (places, shared, shares)
        hidden = HiddenSources(member: places.member, view: view, shares: shares)
    }

    /// How many bytes more may be claimed. One big file does not keep small ones out.
    static func room(besides open: [FleetPlaces.Hold]) -> Int64 {
        let sizes = open.map { $0.isFinishing ? 0 : $0.size }
        return PlaceWorker.mostBytes - (sizes.reduce(0, +) - (sizes.max() ?? 0))
    }

    /// - Parameter known: the numbers that are taken in any case.
    /// - Returns: what is in the queue, and what goes back.
    func take(
        _ claims: [FleetClaim], of shares: [FleetPlaces.Share], in session: Int64, known: Set<Int64>
    ) async throws(JournalError) -> (taken: [Taken], back: [FleetSettlement]) {
        let rows = try await shared.journal.placeWork()
        let before = Set(rows.map(\.number))
        var (kept, back) = await sort(claims, of: shares, in: session, before: before, known: known)
        // Work that this agent had and can no longer do goes back, too.
        let leaving = Set(back.map(\.work))
        let files = rows.filter { leaving.contains($0.number) }.map(\.file)
        places.state.withLock { $0.leaving.formUnion(files) }
        let starts = try await shared.journal.takePlaceWork(kept.map(\.work), at: .now)
        var taken: [Taken] = []
        for (kept, start) in zip(kept, starts) {
            switch start {
            case .keyTaken(let key):
                let reason = "another file of \(places.member.name) has \(DisplayText.escape(key)) there"
                back.append(Self.retry(kept.claim, Self.later, .fleetKeyTaken, reason))
            case .taken(let file):
                places.state.withLock { state in
                    state.work[file] = kept.hold
                    state.leaving.remove(file)
                }
                taken.append(
                    Taken(
                        work: kept.work, file: file, share: kept.share, from: kept.claim.takenFrom,
                        isNew: !before.contains(kept.claim.work)))
            }
        }
        return (taken, back)
    }

    /// Which claims this agent keeps, as much as it has room for, and which go back.
    private func sort(
        _ claims: [FleetClaim], of shares: [FleetPlaces.Share], in session: Int64, before: Set<Int64>, known: Set<Int64>
    ) async -> (kept: [Kept], back: [FleetSettlement]) {
        var (kept, back): ([Kept], [FleetSettlement]) = ([], [])
        var open = places.state.withLock { Array($0.work.values) }
        for share in shares {
            let own = claims.filter { $0.place == share.number }
            for (claim, verdict) in zip(own, await judge(own, share, session, before)) {
                switch verdict {
                case .back(let settlement): back.append(settlement)
                case .take(let work, let isReplaced):
                    let hold = hold(claim, session, share, work, isReplaced)
                    guard before.contains(claim.work) || known.contains(claim.work) || Self.fits(hold, open) else {
                        back.append(FleetSettlement(work: claim.work, fence: claim.fence, .retry))
                        continue
                    }
                    open.append(hold)
                    kept.append(Kept(claim: claim, share: share.name, work: work, hold: hold))
                }
            }
        }
        let strangers = claims.filter { claim in !shares.contains { $0.number == claim.place } }
        return (kept, back + strangers.map { Self.retry($0, Self.soon, nil, "its share is not there") })
    }

    private func hold(
        _ claim: FleetClaim, _ session: Int64, _ share: FleetPlaces.Share, _ work: PlaceWork, _ isReplaced: Bool
    ) -> FleetPlaces.Hold {
        let destinations = places.member.places
        var hold = FleetPlaces.Hold(claim, session, share.root, isReplaced)
        for name in work.admission.steps.destinations { hold.addresses[name] = destinations[name]?.address }
        return hold
    }

    private static func fits(_ hold: FleetPlaces.Hold, _ open: [FleetPlaces.Hold]) -> Bool {
        hold.isFinishing || open.allSatisfy(\.isFinishing) || room(besides: open + [hold]) >= 0
    }

    private static func retry(
        _ claim: FleetClaim, _ after: Duration, _ code: ErrorCode?, _ reason: String
    ) -> FleetSettlement {
        FleetSettlement(
            work: claim.work, fence: claim.fence, .retry, after: after, code: code?.rawValue, reason: reason)
    }

    // MARK: - One claim

    private func judge(
        _ claims: [FleetClaim], _ share: FleetPlaces.Share, _ session: Int64, _ before: Set<Int64>
    ) async -> [Verdict] {
        if claims.isEmpty { return [] }
        let names = claims.map { Self.path($0.name) }
        guard let looks = await shares.look(at: names, in: share.root, marker: share.marker ?? "") else {
            places.member.signals.raise(.fleet(.places))
            // Work that this agent has begun continues: its attempts meet the same trouble, and report it.
            return claims.map { claim in
                guard before.contains(claim.work), let path = Self.path(claim.name) else {
                    return .back(Self.retry(claim, Self.soon, nil, "the share is not there at \(places.member.name)"))
                }
                return verdict(claim, path, nil, share, session, isKnown: true)
            }
        }
        let sources = zip(claims, zip(names, looks)).compactMap { claim, seen -> HiddenSources.Source? in
            guard claim.isFinishing, !before.contains(claim.work), let path = seen.0,
                let source = HiddenSources.Source(claim, path)
            else { return nil }
            // A file of the same size and mtime may have its name meanwhile.
            let inode = JSON.note(claim.plan, as: PlacePlan.self)?.inode
            return Self.version(seen.1, path, claim).map { $0.inode == inode } == true ? nil : source
        }
        let findings = await hidden.find(sources, share, session)
        return zip(claims, zip(names, looks)).map { claim, seen in
            let (name, look) = seen
            let finding = findings[claim.work]
            return judge(claim, name, look, finding, share, session, isKnown: before.contains(claim.work))
        }
    }

    private func judge(
        _ claim: FleetClaim, _ name: FilePath?, _ look: ShareLook.Look, _ finding: HiddenSources.Finding?,
        _ share: FleetPlaces.Share, _ session: Int64, isKnown: Bool
    ) -> Verdict {
        guard let path = name else { return .back(Self.unusable(claim, "its name leads out of the share")) }
        var look = look
        switch finding {
        case nil: break
        case .back(let now): look = now
        case .waits(let why, let pause): return .back(Self.retry(claim, pause, nil, why))
        }
        let found = Self.version(look, path, claim)
        if found != nil || isKnown { return verdict(claim, path, found, share, session, isKnown: isKnown) }
        return .back(missing(claim, look, isListed: places.share(share.root)?.fence != nil))
    }

    /// A name below the share, outside Inlet's own folder; nil for any other.
    private static func path(_ name: [UInt8]) -> FilePath? {
        let path = FilePath(bytes: name)
        let isBelow = path.isRelative && !path.isEmpty && path.bytes == name && !name.contains(0)
        guard isBelow, path.components.allSatisfy({ $0.kind == .regular }), path.components.first != ".inlet" else {
            return nil
        }
        return path
    }

    /// The file, where it is the version of the claim.
    private static func version(_ look: ShareLook.Look, _ path: FilePath, _ claim: FleetClaim) -> FileIdentity? {
        guard case .file(let found) = look,
            PlaceVersion(of: path, size: found.size, modified: found.modified) == claim.version
        else { return nil }
        return found
    }

    private static func unusable(_ claim: FleetClaim, _ reason: String) -> FleetSettlement {
        FleetSettlement(
            work: claim.work, fence: claim.fence, claim.isFinishing ? .finished : .failed,
            code: ErrorCode.internalFault.rawValue, reason: reason)
    }

    /// The share is there, and the version is not: nothing is left to be sent, or to be disposed of. A client of a
    /// network file system may see a folder as it was a minute ago, so that only the agent that lists the share ends it.
    private func missing(_ claim: FleetClaim, _ look: ShareLook.Look, isListed: Bool) -> FleetSettlement {
        let (code, reason): (ErrorCode, String)
        switch look {
        case .unknown: (code, reason) = (.sourceUnreadable, "\(places.member.name) cannot look at it")
        case .nothing: (code, reason) = (.sourceGone, "it was removed before it was delivered")
        case .file: (code, reason) = (.sourceChanged, "it was replaced before it was delivered")
        }
        if look == .unknown || !isListed { return Self.retry(claim, Self.soon, code, reason) }
        return FleetSettlement(
            work: claim.work, fence: claim.fence, claim.isFinishing ? .finished : .superseded, code: code.rawValue,
            reason: reason)
    }

    /// - Parameter found: nil for work that the queue has, whose source is gone.
    private func verdict(
        _ claim: FleetClaim, _ path: FilePath, _ found: FileIdentity?, _ share: FleetPlaces.Share, _ session: Int64,
        isKnown: Bool
    ) -> Verdict {
        guard let plan = JSON.note(claim.plan, as: PlacePlan.self) else {
            let reason = "\(places.member.name) cannot read its plan; install the same version of Inlet everywhere"
            return .back(Self.retry(claim, Self.later, .internalFault, reason))
        }
        let identity = found ?? FileIdentity(size: claim.size, modified: 0, changed: 0, inode: 0, device: 0)
        let arrival = FoundFile(root: share.root, path: path, identity: identity)
        var local = plan
        // The fleet may have given it another name since.
        if let key = claim.key { for place in local.steps.indices { local.steps[place].key = key } }
        // A finishing has no deliveries here.
        if claim.isFinishing { local.steps = [] }
        let known = places.member.places
        let name = { (address: String) in known.first { $0.value.address == address }?.key }
        guard
            let admission = local.admission(of: arrival, terms: shared.destinations.terms(), name: name),
            let marker = share.marker
        else { return .back(Self.elsewhere(claim, plan, places.member.name)) }
        if let closed = closed(admission), !claim.isFinishing, !isKnown {
            return .back(
                Self.retry(claim, Self.soon, .heldByLimit, "\(closed) takes nothing now at \(places.member.name)"))
        }
        let work = PlaceWork(
            number: claim.work, fence: claim.fence, session: session, place: marker, version: claim.version,
            isFinishing: claim.isFinishing, hasFailed: claim.hasFailed, admission: admission,
            notes: PlaceNotes.notes(claim.notes), row: row(claim, plan, marker))
        let isReplaced = plan.inode != 0 && found.map { $0.inode != plan.inode } ?? false
        return .take(work, isReplaced: isReplaced)
    }

    /// The destination of a delivery that nothing may be sent to now.
    private func closed(_ admission: FileAdmission) -> String? {
        admission.plan?.destinations.first { shared.destinations.state(of: $0)?.goesOn == false }
    }

    private static func elsewhere(_ claim: FleetClaim, _ plan: PlacePlan, _ agent: String) -> FleetSettlement {
        let route = DisplayText.escape(plan.route)
        let reason = "\(agent) has no destination for it (route \(route)); configure the same ones at all agents"
        return retry(claim, later, .notConfigured, reason)
    }

    private func row(_ claim: FleetClaim, _ plan: PlacePlan, _ marker: String) -> [UInt8]? {
        guard !claim.isFinishing, let step = plan.steps.first else { return nil }
        let type = places.member.places.values.first { $0.address == step.address }?.type ?? ""
        return JSON.note(
            of: PlaceRow(
                name: claim.name, size: claim.size, address: step.address, type: type,
                ref: claim.version.ref(in: marker, to: step.address), key: claim.key ?? step.key, plan: plan))
    }
}

extension FleetPlaces.Hold {
    init(_ claim: FleetClaim, _ session: Int64, _ root: FilePath, _ isReplaced: Bool) {
        self.init(
            work: claim.work, fence: claim.fence, session: session, root: root, isFinishing: claim.isFinishing,
            size: claim.size, isReplaced: isReplaced)
    }
}

/// Looks into shares, which may hang: nobody waits for them longer than `MarkerThreads.patience`.
final class ShareLook: Sendable {
    enum Look: Sendable, Equatable {
        case file(FileIdentity)
        /// No regular file has the name.
        case nothing
        case unknown
    }

    private let pool = BlockingPool(name: "shares", threads: 1)
    private let threads = MarkerThreads()

    /// The regular files at these places now; nil where the share lacks its marker, or does not answer.
    func look(at paths: [FilePath?], in root: FilePath, marker: String) async -> [Look]? {
        await answer(root) {
            guard PlaceMarker.read(in: root) == .found(marker) else { return nil }
            let found = paths.map { path in path.map { Self.look(at: RootedPath(root, $0)) } ?? .nothing }
            // A share that went away meanwhile has no files.
            return PlaceMarker.read(in: root) == .found(marker) ? found : nil
        }
    }

    /// Renames a file, and never over another one.
    ///
    /// - Returns: what has the name then; nil where it was not renamed.
    func rename(_ path: FilePath, to target: FilePath, in root: FilePath, marker: String) async -> Look? {
        await answer(root) {
            guard PlaceMarker.read(in: root) == .found(marker), let name = target.lastComponent else { return nil }
            do throws(SystemError) {
                let (from, old) = try RootedPath(root, path).parent()
                let to = try Folder(root).folder(target.removingLastComponent(), making: 0o755)
                try from.rename(old, to: to, name)
                try to.synchronize()
                try from.synchronize()
            } catch {
                // The next look tells whether it was.
                return nil
            }
            return Self.look(at: RootedPath(root, target))
        }
    }

    private func answer<Value: Sendable>(
        _ root: FilePath, _ body: @escaping @Sendable () -> Value?
    ) async -> Value? {
        await pool.branch(UInt64(bitPattern: Int64(root.hashValue))).run { [threads] in
            // Where no thread can be had, nobody knows either.
            try? threads.result(root) { () throws(SystemError) in body() } ?? nil
        }
    }

    private static func look(at place: RootedPath) -> Look {
        do throws(SystemError) {
            return try FileLook.look(at: place).identity.map { .file($0) } ?? .nothing
        } catch {
            // Somebody else can look, or this agent later.
            return .unknown
        }
    }
}
