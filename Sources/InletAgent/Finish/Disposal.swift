internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Decides the disposal of one file: the intent is journaled, the file is renamed to a private name and checked once
/// more, and only then removed or moved. A file that is busy or another one gets its own name back untouched. After a
/// crash the intent shows what may have been done.
///
/// Before the intent it is judged, then probed for writers, and renamed only while it is the judged file. Under its
/// private name it is probed first and judged then: every earlier writer was seen, and no new one can find it. For a
/// removal by a person, the destinations are asked while the file is hidden: it cannot be its own proof.
struct Disposal: Sendable {
    private enum State {
        case begins, startsOver, clearsCopy
        /// The names that a file can have by a damaged intent.
        case searches([FilePath])
        case looksForOwn
        case looksAtOwn, comparesOwn, remembersOwn, provesLinks, asksWriter
        case provesCopies
        case prepares, intends, hides
        case looksWhetherHidden(any Error)
        case looksAtHidden, unlinks, asksWriterOfHidden, looksAgain, comparesHidden
        case looksForSecondName(DisposalName)
        case chooses, comparesTarget, notesMove, moves, copies, removes, synchronizes
        case looksAtOwnInstead
        case looksForCopy(SourceStatus)
        case comparesOwnCopy(SourceStatus, isKnown: Bool)
        /// Whether a changed file has its own name.
        case looksForTarget(isChanged: Bool)
        case asksRoot(MissingSource)
        case lends(isSame: Bool)
        case givesBack(any Error)
        case putsBack(DisposalStep)
        case returns(DisposalStep)
        /// The remaining steps in any case.
        case takes([DisposalStep])
    }

    /// The conclusion about a file that is not at its place, once its disk is known to be there.
    private enum MissingSource { case gone, done, unreadable }

    private static let awayPause = Duration.seconds(60)
    private static let soon = Duration.seconds(1)
    private static let busyPause = Duration.seconds(30)

    private let places: FinishFolders
    private let action: FinishAction
    /// Whether no byte of its own was sent, so that its deletion needs a proof of its own content.
    private let isLinked: Bool
    private var file: FileRow
    private var state = State.begins
    private var intent: FinishIntent?
    /// The file at its last check.
    private var identity: FileIdentity
    /// Whether it continues the work of another process.
    private var isResumed = false
    /// Its destinations' answer in this try; nil until they were asked.
    private var copies: String?
    /// The last name that was recorded first, and whether a move to it may have been made.
    private var wanted: FilePath?
    /// The number of the last name in this try: 1 is the name without a number.
    private var number = 1
    private var wasMoving = false
    /// Why an unfinished copy is still there: only the intent has its name, so the intent stays.
    private var copyFailure: (any Error)?

    init(_ job: Job, _ places: FinishFolders) {
        (file, self.places, identity) = (job.file, places, job.file.identity)
        action = places.mayWrite ? FinishAction(job.file) : .keep
        isLinked = job.deliveries.contains { $0.proof?.isOfAnother == true }
    }

    /// - Parameter seen: the result of the last returned step; `begun` at first.
    mutating func next(_ seen: DisposalStepResult, at now: WallTime) -> DisposalStep {
        let before = state
        guard let step = step(seen, now) else {
            return .fail(DisposalError.misstep(state: "\(before)", seen: "\(seen)"))
        }
        if let copyFailure, step.forgetsIntent { return .fail(copyFailure) }
        return step
    }

    /// nil where the state expects no such result.
    private mutating func step(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        if case .failed(let error) = seen { return afterFailure(error, now) }
        switch state {
        case .begins: return begin(now)
        // In a share the fleet is asked first: another agent may have given it its name again.
        case .startsOver: return places.isShared ? take([.note(nil), anew(now)]) : go(.begins, .note(nil))
        case .takes(let steps): return take(steps)
        case .clearsCopy, .looksAtHidden, .provesCopies, .looksForSecondName, .unlinks, .asksWriterOfHidden,
            .looksAgain, .comparesHidden:
            return underPrivateName(seen, now)
        case .looksAtOwn, .comparesOwn, .remembersOwn, .provesLinks, .asksWriter: return underOwnName(seen, now)
        case .prepares, .intends, .hides, .looksWhetherHidden: return onTheWay(seen, now)
        case .chooses, .comparesTarget, .notesMove, .moves, .copies, .removes, .synchronizes: return out(seen, now)
        case .lends, .givesBack, .putsBack, .returns: return back(seen, now)
        default: return elsewhere(seen, now)
        }
    }

    private mutating func go(_ state: State, _ step: DisposalStep) -> DisposalStep {
        self.state = state
        return step
    }

    private mutating func take(_ steps: [DisposalStep]) -> DisposalStep? {
        state = .takes(Array(steps.dropFirst()))
        return steps.first
    }

    private mutating func begin(_ now: WallTime) -> DisposalStep? {
        if let note = file.intent {
            file.intent = nil
            // An unreadable intent counts as none: the file gets its own name back, and all starts again.
            guard let known = try? FinishIntent(note), known.isWhole else { return search(places.privateNames(file)) }
            (intent, wanted, wasMoving, isResumed) = (known, known.targetFile, known.isMoving == true, true)
            if let copy = known.copyFile { return go(.clearsCopy, .removeCopy(copy)) }
            return lookAtHidden()
        }
        if action == .keep { return .kept(file) }
        return go(.looksAtOwn, .look(.own, file.fullPath))
    }

    // MARK: - Under its own name

    private mutating func underOwnName(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        switch (state, seen) {
        case (.looksAtOwn, .found(let found)):
            identity = found
            switch SourceMatch(found, of: file) {
            case .same: return proveLinks()
            case .unread: return go(.comparesOwn, .compare(.own, found))
            case .changed: return .superseded
            // Moving it away hides no file from anybody.
            case .doubtful where action == .quarantine: return proveLinks()
            case .doubtful: return .doubtful(file)
            }
        case (.looksAtOwn, .missing): return go(.asksRoot(.gone), .askRoot)
        // Read once, not at each try.
        case (.comparesOwn, .content(.same)): return go(.remembersOwn, .remember(identity))
        case (.comparesOwn, .content(.another)): return .superseded
        case (.comparesOwn, .content(.moving)): return moving(now)
        case (.remembersOwn, .done):
            file.identity = identity
            return proveLinks()
        case (.provesLinks, .answer(true)): return askWriter()
        // Only its length was proved: it stays.
        case (.provesLinks, .answer(false)) where file.isOnOrder:
            return .stays(file, "its content is not the one that was sent")
        case (.provesLinks, .answer(false)): return .kept(file)
        case (.asksWriter, .writer(.busy)): return busy(now)
        case (.asksWriter, .writer(.unknown)) where action != .quarantine: return hold(below: places.root, now)
        case (.asksWriter, .writer): return prepare()
        default: return nil
        }
    }

    private mutating func proveLinks() -> DisposalStep {
        action == .delete && isLinked ? go(.provesLinks, .proveLinks) : askWriter()
    }

    private mutating func askWriter() -> DisposalStep { go(.asksWriter, .askWriter(.own)) }

    private mutating func prepare() -> DisposalStep? {
        let target = places.target(file, action)
        intent = FinishIntent(action: action, privateFile: places.privateFile(file), target: target)
        // Checked now, while the file still has its own name.
        return target.map { go(.prepares, .makeWritable($0)) } ?? intend()
    }

    /// Where writers are unknown, the file is moved out of their way and checked again after `hold`.
    private mutating func hold(below folder: FilePath, _ now: WallTime) -> DisposalStep? {
        let held = places.heldFile(file, below: folder)
        intent = FinishIntent(
            action: action, privateFile: held, target: places.target(file, action),
            heldUntil: intent?.heldUntil ?? now + places.hold)
        return go(.prepares, .makeWritable(held))
    }

    // MARK: - To its private name

    private mutating func intend() -> DisposalStep? {
        (wanted, wasMoving, isResumed) = (intent?.targetFile, intent?.isMoving == true, false)
        return intent.map { go(.intends, .begin($0)) }
    }

    private mutating func onTheWay(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        guard let begun = intent else { return nil }
        switch (state, seen) {
        case (.prepares, .done): return intend()
        // By itself: a person has withdrawn the order.
        case (.intends, .needed(file.id)): return anew(now)
        case (.intends, .needed(let other)): return .pause(now, Self.busyPause, "waiting: job \(other) needs the file")
        case (.intends, .done): return go(.hides, .hide(identity, as: begun.privateFile))
        case (.hides, .content(.moving)): return take(withdrawal + [moving(now)])
        case (.hides, .found(let found)):
            intent?.changed = found.changed
            guard let until = begun.heldUntil else { return lookAtHidden() }
            return take([.note(intent), .held(until)])
        case (.hides, .missing): return lookAtHidden()
        // The rename may have happened although it failed: then the intent must have the file's place.
        case (.looksWhetherHidden(let error), .found): return .fail(error)
        case (.looksWhetherHidden(let error), .missing):
            let beside = file.fullPath.removingLastComponent()
            if begun.heldUntil != nil, (error as? SystemError)?.isCrossDevice == true,
                begun.privateFile != places.heldFile(file, below: beside)
            {
                // Another file system is mounted below the root: the file stays on its own.
                return hold(below: beside, now)
            }
            return take(withdrawal + [.fail(error)])
        default: return nil
        }
    }

    // MARK: - Under its private name

    private mutating func lookAtHidden() -> DisposalStep? { look(.looksAtHidden) }

    private func judgementOfHidden(_ found: FileIdentity) -> SourceMatch {
        SourceMatch(found, of: file, isRenamed: true, ours: intent?.changed)
    }

    private mutating func look(_ state: State) -> DisposalStep? {
        intent.map { go(state, .look(.hidden, $0.privateFile)) }
    }

    private mutating func underPrivateName(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        switch (state, seen) {
        case (.clearsCopy, .done): return lookAtHidden()
        // It was not renamed, or everything was done; or its disk is away.
        case (.looksAtHidden, .missing), (.looksAgain, .missing):
            return go(.looksAtOwnInstead, .look(.own, file.fullPath))
        case (.looksAtHidden, .found(let found)):
            identity = found
            return isResumed ? go(.looksForSecondName(.own), .look(.own, file.fullPath)) : judgeHidden(now)
        // Where a rename is a link and an unlink, the process died in between.
        case (.looksForSecondName, .found(let other)) where other.isFile(identity):
            return go(.unlinks, .remove(identity))
        case (.looksForSecondName(.own), .found), (.looksForSecondName(.own), .missing):
            guard wasMoving, let wanted else { return judgeHidden(now) }
            return go(.looksForSecondName(.target), .look(.target, wanted))
        case (.looksForSecondName, .found), (.looksForSecondName, .missing): return judgeHidden(now)
        case (.unlinks, .done): return lookAtHidden()
        case (.provesCopies, .copies(let proof)): return take(proof, now)
        case (.asksWriterOfHidden, .writer(.busy)):
            let isSame = judgementOfHidden(identity) == .same
            return go(.lends(isSame: isSame), .giveBack(identity))
        case (.asksWriterOfHidden, .writer): return look(.looksAgain)
        case (.looksAgain, .found(let found)):
            identity = found
            switch judgementOfHidden(found) {
            case .same: return act()
            case .unread: return go(.comparesHidden, .compare(.hidden, found))
            case .changed: return putBack(.superseded)
            case .doubtful where intent?.action == .quarantine: return act()
            case .doubtful: return putBack(.doubtful(file))
            }
        case (.comparesHidden, .content(.same)): return act()
        case (.comparesHidden, .content(.another)): return putBack(.superseded)
        case (.comparesHidden, .content(.moving)): return moving(now)
        default: return nil
        }
    }

    private mutating func take(_ proof: CopyProof, _ now: WallTime) -> DisposalStep? {
        switch proof {
        case .postponed(let why): return giveBack(.pause(now, Self.busyPause, "waiting: \(why)"))
        case .unproved(let why): return giveBack(.stays(file, why))
        case .proved(let words):
            copies = words
            // That may have taken long.
            return look(.looksAtHidden)
        }
    }

    private mutating func judgeHidden(_ now: WallTime) -> DisposalStep {
        if let until = intent?.heldUntil, until > now { return .held(until) }
        if judgementOfHidden(identity) == .changed { return putBack(.superseded) }
        if file.isOnOrder, intent?.action == .delete, copies == nil { return go(.provesCopies, .proveCopies) }
        return go(.asksWriterOfHidden, .askWriter(.hidden))
    }

    // MARK: - Away

    private mutating func act() -> DisposalStep? {
        intent?.action == .delete ? go(.removes, .remove(identity)) : choose(1)
    }

    /// Never overwrites: a taken name gets a number.
    private mutating func choose(_ number: Int) -> DisposalStep? {
        if let copyFailure { return go(.givesBack(copyFailure), .giveBack(identity)) }
        self.number = number
        return wanted.map { go(.chooses, .chooseTarget($0, number: number)) }
    }

    private mutating func out(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        switch (state, seen) {
        case (.chooses, .free(let target, let copy)):
            intent?.target = target.bytes
            intent?.copy = copy.bytes
            intent?.isMoving = true
            return go(.notesMove, .note(intent))
        // The process may have died between a copy and the removal.
        case (.chooses, .taken) where wasMoving && number == 1: return go(.comparesTarget, .compareCopy(.hidden))
        case (.chooses, .taken): return choose(number + 1)
        case (.comparesTarget, .answer(true)): return go(.removes, .remove(identity))
        case (.comparesTarget, .answer(false)): return choose(2)
        case (.notesMove, .done): return go(.moves, .move(identity))
        case (.copies, .done): return go(.removes, .remove(identity))
        case (.moves, .done), (.removes, .done): return go(.synchronizes, .synchronize)
        case (.synchronizes, .done): return intent?.action == .delete ? deleted : moved()
        default: return nil
        }
    }

    private var deleted: DisposalStep {
        .end(copies.map { Disposition.deleted(because: $0) } ?? Disposition.deleted, state: nil, place: nil)
    }

    /// Under the last name in the intent.
    private mutating func moved() -> DisposalStep? {
        guard let target = intent?.targetFile else { return nil }
        guard intent?.action == .quarantine else {
            return .end(Disposition.archived(target.display), state: nil, place: target)
        }
        let disposition = Disposition.quarantined(target.display)
        return take([.writeReason(disposition), .end(disposition, state: nil, place: target)])
    }

    // MARK: - Under neither name

    private mutating func elsewhere(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        switch (state, seen) {
        case (.searches, .found): return putBack(anew(now))
        case (.searches(let rest), .missing): return search(rest)
        case (.looksForOwn, .found): return take([.synchronize, .note(nil), anew(now)])
        // Only a person can find the file.
        case (.looksForOwn, .missing): return go(.asksRoot(.unreadable), .askRoot)
        case (.looksAtOwnInstead, .found(let found)): return ownInstead(found)
        case (.looksAtOwnInstead, .missing): return withoutFile(isChanged: false)
        case (.looksForCopy(let status), .found(let target)):
            let isKnown = target.isKnown(as: file.identity)
            return go(.comparesOwnCopy(status, isKnown: isKnown), .compareCopy(.own))
        case (.looksForCopy, .missing): return startOver()
        case (.comparesOwnCopy, .answer(true)):
            // Only the removal failed; another copy would be a second file in the archive.
            intent?.changed = nil
            return intend()
        case (.comparesOwnCopy(.unclear, isKnown: true), .answer): return go(.asksRoot(.done), .askRoot)
        case (.comparesOwnCopy, .answer): return startOver()
        case (.looksForTarget, .found(let target)) where target.isKnown(as: file.identity):
            return go(.asksRoot(.done), .askRoot)
        case (.looksForTarget(isChanged: true), .found), (.looksForTarget(isChanged: true), .missing):
            return changedInstead()
        case (.looksForTarget, .found), (.looksForTarget, .missing): return go(.asksRoot(.gone), .askRoot)
        case (.asksRoot(let absence), .root(.here)): return conclude(absence)
        case (.asksRoot, .root(let root)):
            let pause = root == .unknown ? Self.soon : Self.awayPause
            return .pause(now, pause, "waiting for \(file.root.display) to come back")
        default: return nil
        }
    }

    private mutating func search(_ names: [FilePath]) -> DisposalStep {
        guard let name = names.first else { return go(.looksForOwn, .look(.own, file.fullPath)) }
        return go(.searches(Array(names.dropFirst())), .look(.hidden, name))
    }

    /// Whether the file under its own name is the file, and was never hidden or got its name back.
    private mutating func ownInstead(_ found: FileIdentity) -> DisposalStep? {
        identity = found
        let status = SourceStatus(found, since: file.identity, ignoringChangeTime: true)
        if status == .changed { return withoutFile(isChanged: true) }
        if wasMoving, let wanted { return go(.looksForCopy(status), .look(.target, wanted)) }
        return startOver()
    }

    private mutating func withoutFile(isChanged: Bool) -> DisposalStep? {
        if intent?.action == .delete { return isChanged ? changedInstead() : go(.asksRoot(.done), .askRoot) }
        return wanted.map { go(.looksForTarget(isChanged: isChanged), .look(.target, $0)) }
    }

    /// Edited before it was hidden or after it got its name back, or another file: either way it is checked again.
    private mutating func changedInstead() -> DisposalStep? { take([.synchronize, .superseded]) }

    private mutating func conclude(_ absence: MissingSource) -> DisposalStep? {
        switch absence {
        case .gone:
            let gone = DisposalStep.end(Disposition.untouched("it is no longer there"), state: nil, place: nil)
            return intent == nil ? gone : take([.synchronize, gone])
        // The process that did it may have died before it was durable.
        case .done: return go(.synchronizes, .synchronize)
        case .unreadable:
            return .fail(DisposalError.unreadableIntent(file, places))
        }
    }

    private mutating func startOver() -> DisposalStep {
        intent = nil
        // It may have got its name back a moment ago.
        return go(.startsOver, .synchronize)
    }

    // MARK: - Back to its own name

    private mutating func putBack(_ ending: DisposalStep) -> DisposalStep { go(.putsBack(ending), .putBack) }

    /// Stays the known file, with the numbers that it has now.
    private mutating func giveBack(_ ending: DisposalStep) -> DisposalStep {
        go(.returns(ending), .giveBack(identity))
    }

    private mutating func back(_ seen: DisposalStepResult, _ now: WallTime) -> DisposalStep? {
        switch (state, seen) {
        case (.returns(let ending), .found(let found)):
            return take([.remember(found), .synchronize, .note(nil), ending])
        case (.returns(let ending), .done): return take([.synchronize, .note(nil), ending])
        // A file that may have been edited keeps the numbers of the delivered one, and is judged by them.
        case (.lends(isSame: true), .found(let found)):
            return take([.remember(found), .synchronize] + withdrawal + [busy(now)])
        case (.lends, .found), (.lends, .done): return take([.synchronize] + withdrawal + [busy(now)])
        case (.givesBack(let error), .found(let found)): return take([.remember(found), .fail(error)])
        case (.givesBack(let error), .done): return .fail(error)
        case (.putsBack(let ending), .put(let path)):
            if path == file.fullPath { return take([.synchronize, .note(nil), ending]) }
            // A new file has the name meanwhile: both are kept, this one under a name that says so.
            let kept = Disposition.untouched("kept as \(path.display)")
            return take([.synchronize, .note(nil), .end(kept, state: .superseded, place: nil)])
        default: return nil
        }
    }

    /// A file under its own name has no intent. A copy that was begun stays known: another copy would be a second file
    /// in the archive.
    private var withdrawal: [DisposalStep] { intent?.isMoving == true ? [] : [.note(nil)] }

    // MARK: - Errors

    /// An error proves nothing. A person must not find the file hidden for as long as the archive fails. If it stays
    /// hidden, the intent says so, and the first error is the one to fix.
    private mutating func afterFailure(_ error: any Error, _ now: WallTime) -> DisposalStep? {
        let isTaken = (error as? SystemError)?.isTaken == true
        switch state {
        case .clearsCopy:
            copyFailure = error
            return lookAtHidden()
        case .hides: return look(.looksWhetherHidden(error))
        case .looksWhetherHidden(let first), .givesBack(let first): return .fail(first)
        case .provesCopies: return giveBack(.stays(file, "\(error)"))
        case .returns(let ending) where isTaken: return putBack(ending)
        // Another file has its name by now: it stays where it is.
        case .lends: return isTaken ? busy(now) : .fail(error)
        case .moves where isTaken, .copies where isTaken: return choose(number + 1)
        case .moves where (error as? SystemError)?.isCrossDevice == true: return go(.copies, .copy(identity))
        case .chooses, .comparesTarget, .notesMove, .moves, .copies, .removes:
            return go(.givesBack(error), .giveBack(identity))
        case .takes(let rest):
            if case .fail(let first)? = rest.last { return .fail(first) }
            return .fail(error)
        default: return .fail(error)
        }
    }

    // MARK: - Ends

    /// An open file is not yet changed: a change shows after the writer has closed it.
    private func busy(_ now: WallTime) -> DisposalStep {
        .pause(now, Self.busyPause, "waiting: open for writing by another program")
    }

    /// Checked during a change: it is quiet a moment later.
    private func moving(_ now: WallTime) -> DisposalStep {
        .pause(now, Self.soon, "waiting: it changes while it is checked")
    }

    private func anew(_ now: WallTime) -> DisposalStep { .pause(now, Self.soon, "waiting: to be checked again") }
}
