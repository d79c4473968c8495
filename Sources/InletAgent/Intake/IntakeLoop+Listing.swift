internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What a listing shows, from the directory to the journal.
///
/// A file that is complete goes there without a stay in the settler, which keeps only those that must be looked at again. The
/// journal takes one batch while the next is looked at.
extension IntakeLoop {
    /// Entries listed between two looks at the events.
    private static let scanBudget = 4000
    /// Files in one transaction: few enough for what waits behind it, many enough for a disk that syncs slowly.
    private static let batch = 256

    mutating func advanceScan() async throws(SystemError) {
        guard !scan.isIdle || !held.isEmpty, trackHeld() else { return }
        defer { scan.rest() }
        volumeQuestion.reopen()
        var budget = Self.scanBudget
        guard admission.admitter.room.limit.isOff else { return trackListed(&budget) }
        let (admitter, tolerance, hashing) = (admission.admitter, admission.tolerance, admission.hashing)
        var looked = admission.look(listed(&budget))
        var ready: [Candidate] = []
        var last: [AdmissionResult] = []
        var failure: SystemError?
        while !looked.isEmpty || !ready.isEmpty {
            let (arrivals, files) = (looked.arrivals, ready)
            // In this order: what the journal is asked must not wait for what it is given.
            async let known = admitter.recall(arrivals, tolerance: tolerance)
            async let results = admitter.admit(files, for: .found(inListing: true), hashing)
            await Task.yield()
            await apply(admission.round(last))
            // Meanwhile, the journal answers.
            let ahead = admission.look(listed(&budget))
            let seen = await known
            // They tell what a file of the listing was called before.
            failure = failure ?? readingEvents()
            if failure != nil { budget = 0 }
            ready = await judge(looked, seen)
            looked = ahead
            last = await results
        }
        await apply(admission.round(last))
        if let failure { throw failure }
    }

    private mutating func readingEvents() -> SystemError? {
        do throws(SystemError) {
            try readEvents()
            return nil
        } catch {
            return error
        }
    }

    /// Sorts what was looked at into what is complete, which is returned, and the rest.
    private mutating func judge(
        _ looked: Inspector.Looks, _ known: Result<[KnownFile], JournalError>
    ) async -> [Candidate] {
        if losesPassing() { return [] }
        let considered = await admission.consider(looked, known)
        if losesPassing() { return [] }
        for (path, verdict) in considered {
            guard case .look(let look) = verdict else { continue }
            let settle = admission.settle(for: path)
            let isForeign = modes.isForeign(path)
            if let identity = settler.complete(look, settle: settle, isForeign: isForeign, at: .now, wall: .now) {
                admission.queue(path, identity)
            } else if !settler.discover(path, settle: settle, at: .now) {
                held.append(path)
            } else if case .settled(let identity) = settler.judge(
                path, look, isForeign: isForeign, at: .now, wall: .now)
            {
                admission.queue(path, identity)
            }
        }
        return admission.takeQueued()
    }

    /// The next files of the listing that nothing is known of yet; none when the turn is over.
    private mutating func listed(_ budget: inout Int) -> [FilePath] {
        var paths: [FilePath] = []
        while budget > 0, paths.count < Self.batch, held.isEmpty, !inbox.isStopped, let path = nextListed(&budget) {
            if !settler.isTracked(path), !isMarker(path) { paths.append(path) }
        }
        return paths
    }

    /// All that is listed waits its turn: there is not room for every file.
    private mutating func trackListed(_ budget: inout Int) {
        while budget > 0, let path = nextListed(&budget) {
            if !take(path) { return }
        }
    }

    /// The next file of the listing, complete or not.
    private mutating func nextListed(_ budget: inout Int) -> FilePath? {
        while budget > 0, !scan.isIdle {
            budget -= 1
            switch scan.next(ignore) {
            case .enter(let directory): enter(directory)
            case .file(let path): return path
            case .irregular(let path): admission.inspector.noteIrregular(path)
            case .trouble(let directory, let error): tell(directory, error)
            case .reading(let names): budget -= names
            case .finished: finishScan()
            }
        }
        return nil
    }

    /// Files for which there was no room before. False = there is none yet.
    private mutating func trackHeld() -> Bool {
        while let path = held.last {
            guard settler.discover(path, settle: admission.settle(for: path), at: .now) else { return false }
            held.removeLast()
        }
        return true
    }

    /// A listing shows a file. False = no room: the listing waits until files have settled, so that memory stays bounded.
    mutating func take(_ path: FilePath) -> Bool {
        if isMarker(path) || settler.discover(path, settle: admission.settle(for: path), at: .now) { return true }
        held.append(path)
        return false
    }

    /// Markers are found with what they mark.
    private mutating func isMarker(_ path: FilePath) -> Bool {
        guard let unit = admission.unitMarked(by: path) else { return admission.fileMarked(by: path) != nil }
        units.markerSeen(in: unit, at: .now)
        return true
    }
}
