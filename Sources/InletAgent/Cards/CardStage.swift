internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Looks after the cards in the readers: decides about each whether it may be taken out, notices one that is pulled
/// without an event, and tells both.
final class CardStage: Service {
    private let shared: Shared
    private let thread = BlockingPool(name: "disks", threads: 1)
    private let waker: Waker
    /// The programs of `on_card`, by their commands, and those that do not run yet.
    private let hooks = Mutex<(all: [[String]: CardHook], new: [CardHook])>(([:], []))

    init(_ shared: Shared) throws(SystemError) { (self.shared, waker) = (shared, try Waker()) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await withTaskCancellationHandler {
                        await withTaskExecutorPreference(self.thread) { await self.followDisks() }
                    } onCancel: {
                        self.waker.wake()
                    }
                }
                while !Task.isCancelled {
                    for card in self.shared.cards.takeNew() {
                        let loop = CardLoop(card, self.shared, hook: self.hook)
                        group.addTask { await loop.run() }
                    }
                    for hook in self.takeNewHooks() { group.addTask { await hook.run() } }
                    await self.shared.cards.signal.wait(until: nil)
                }
            }
        }
    }

    private func hook(_ command: [String]) -> CardHook {
        let (hook, isNew) = hooks.withLock { hooks in
            if let known = hooks.all[command] { return (known, false) }
            let hook = CardHook(command, log: shared.log)
            hooks.all[command] = hook
            hooks.new.append(hook)
            return (hook, true)
        }
        if isNew { shared.cards.signal.raise() }
        return hook
    }

    private func takeNewHooks() -> [CardHook] { hooks.withLock { exchange(&$0.new, with: []) } }

    // MARK: - Disks that no pattern fits

    /// A new mount gets so long before it counts as unknown: the watchers of the patterns look at it first.
    private static let patience = Duration.seconds(3)
    private static let retryPause = Duration.seconds(30)

    private func followDisks() async {
        // By the numbers of their mounts.
        var unknown: [Int: Card] = [:]
        while !Task.isCancelled {
            do {
                let mounts = try MountWatch(onlyMounts: true)
                var isFirst = true
                while !Task.isCancelled {
                    waker.rest(until: .now.advanced(by: Self.patience))
                    if Task.isCancelled { return }
                    try await noteUnknown(&unknown, isNew: !isFirst)
                    isFirst = false
                    _ = try mounts.wait(until: nil, waker: waker)
                }
            } catch {
                // Only disks that nobody watches stay unseen meanwhile.
                waker.rest(until: .now.advanced(by: Self.retryPause))
            }
        }
    }

    private func noteUnknown(_ known: inout [Int: Card], isNew: Bool) async throws {
        let patterns = shared.settings.watch.compactMap(\.pattern)
        let table = try MountTable.current()
        let watched = Set(shared.cards.all.filter { !$0.state.withLock(\.facts.isUnknown) }.map(\.mount))
        let disks = table.mounts.filter { mount in
            mount.source.isAbsolute && patterns.contains { $0.mayHold(mount.point) } && !watched.contains(mount.point)
        }
        for (mount, card) in known where !disks.contains(where: { $0.id == mount }) {
            // A watched folder may have come on it meanwhile: then its watcher says when it goes.
            if card.state.withLock(\.roots.isEmpty) { shared.cards.leave(card) }
            known[mount] = nil
        }
        for disk in disks where known[disk.id] == nil {
            let point = disk.point
            let identity = try VolumeFinder().identity(of: point)
            let row = try await shared.journal.card(identity, key: identity.key, weaker: identity.weakerKeys, at: .now)
            let insertion = try await shared.journal.insertion(of: row.id, at: point, isNew: isNew, now: .now)
            known[disk.id] = shared.cards.arrivedUnknown(insertion, mount: point)
        }
    }
}

extension RootPattern {
    /// Whether a disk that is mounted at `point` is one that the pattern is meant for, though nothing on it may match.
    func mayHold(_ point: FilePath) -> Bool {
        guard point.isWithin(parent), point != parent else { return false }
        let below = Array(point.components.dropFirst(parent.components.count))
        return below.count <= parts.count && zip(parts, below).allSatisfy { $0.matches($1) }
    }
}

/// The life of one card in a reader.
private struct CardLoop: Sendable {
    let card: Card
    let shared: Shared
    /// A card that does not answer holds up nobody else.
    private let pool = BlockingPool(name: "card", threads: 1)
    private let probing = BlockingPool(name: "probe", threads: 1)
    /// The program of a command.
    private let hook: @Sendable ([String]) -> CardHook

    /// Between two direct reads, and how long one may take.
    private static let probePause = Duration.seconds(4)
    private static let probeTime = Duration.seconds(4)
    /// Before destinations that did not answer are asked again; it doubles, up to a time that a person waits for, or that
    /// leaves the machine its work.
    private static let retryPause = Duration.seconds(1)
    private static let waitedPause = Duration.seconds(4)
    private static let longestPause = Duration.seconds(60)
    /// The longest time without a look at a card that something happened on.
    private static let longestRest = Duration.seconds(4)
    /// For so long a look at the same files may leave the last verdict standing.
    private static let standing = Duration.seconds(30)

    init(_ card: Card, _ shared: Shared, hook: @escaping @Sendable ([String]) -> CardHook) {
        (self.card, self.shared, self.hook) = (card, shared, hook)
    }

    func run() async {
        tell(.inserted)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.watchOver() }
            await withTaskExecutorPreference(pool) { await follow() }
            group.cancelAll()
        }
        await end()
    }

    private var isGone: Bool { Task.isCancelled || card.state.withLock(\.isGone) }

    // MARK: - Deciding

    private func follow() async {
        var (said, pause): (String?, Duration) = (nil, Self.retryPause)
        var isSettled = true
        while !isGone {
            let hasNews = card.state.withLock { state in
                defer { state.hasNews = false }
                state.isLooking = state.hasNews
                return state.hasNews
            }
            let begun = ContinuousClock.now
            // Looking again by itself is no news: it refuses no eject.
            if hasNews || !isSettled {
                do {
                    isSettled = try await decide(&said)
                } catch {
                    // The journal, the card or its watcher reports what is wrong; it is looked at again. The
                    // earlier facts may be wrong now.
                    isSettled = false
                    show(CardFacts(), evaluation: nil)
                    said = nil
                }
            }
            let cost = begun.duration(to: .now)
            let longest = min(max(Self.waitedPause, cost * 20), Self.longestPause)
            pause = isSettled ? Self.retryPause : min(pause * 2, longest)
            // Counting a big card must not become all the work there is.
            let next = ContinuousClock.now.advanced(by: max(isSettled ? .zero : pause, min(cost * 2, Self.longestRest)))
            await card.signal.wait(until: isSettled ? nil : next)
            while next > .now, !isGone { await card.signal.wait(until: next) }
        }
    }

    /// Keeps failed and slow reads with the card.
    private func noteErrors(reads: Int = 0, slow: Int = 0) async throws {
        if reads + slow == 0 { return }
        let id = card.state.withLock(\.insertion.card.id)
        let errors = try await shared.journal.addErrors(id, reads: reads, slow: slow, at: .now)
        card.update { $0.insertion.card.errors = errors }
    }

    /// The card answers: reads that failed are its errors. Those of a card that was pulled are not.
    private func noteFaults(of answer: CardProbe.Answer) async {
        let reads = card.state.withLock { state in
            defer { state.readFaults = 0 }
            return state.readFaults
        }
        if answer == .pulled { return }
        do {
            try await noteErrors(reads: reads)
        } catch {
            // The journal takes them at the next look.
            card.state.withLock { $0.readFaults += reads }
        }
    }

    /// - Returns: whether nothing has to be asked again.
    private func decide(_ said: inout String?) async throws -> Bool {
        var evaluation = try CardEvaluation(card, shared, pool)
        let begun = ContinuousClock.now
        let rules = card.cardRules
        let facts = try await evaluation.run { facts, inventory in
            let stands = card.state.withLock { state in
                state.verdict.isSafe && !inventory.isEmpty && state.inventory == inventory
                    && begun.duration(to: .now) < Self.standing
            }
            if stands, case .notYet = CardVerdict(facts, rules) { return }
            show(facts, evaluation: nil)
        }
        card.state.withLock { state in
            state.readFaults += evaluation.readFaults
            // Otherwise each look would read the whole card again.
            state.insertion.checked = evaluation.checked ?? state.insertion.checked
        }
        try await noteErrors(slow: evaluation.slowReads)
        let verdict = show(facts, evaluation: evaluation)
        let word = "\(verdict.headline) \(facts.files) \(facts.accounted)"
        // Changes that came meanwhile are looked at next, and decide.
        let isOvertaken = facts.stage == .known && card.state.withLock(\.hasNews)
        // `end` tells that it is out.
        if word != said, !isOvertaken, !facts.isOut {
            await record(verdict, facts, checked: evaluation.checked)
            said = word
            tell(Self.state(of: verdict))
        }
        lookForSuspects(verdict, evaluation)
        await writeReport(verdict)
        await ejectIfWanted(verdict)
        return !evaluation.asksAgain
    }

    /// Looks for recordings that do not open, or are missing from a run of numbers: once for each content, and after the
    /// verdict, which does not wait for it. Blocks.
    private func lookForSuspects(_ verdict: CardVerdict, _ evaluation: CardEvaluation) {
        let inventory = evaluation.inventory
        guard verdict.isSafe, !inventory.isEmpty, card.state.withLock({ $0.suspects?.inventory != inventory }) else {
            return
        }
        let found = ClipReader.suspects(on: card.mount, evaluation.content) {
            card.state.withLock { $0.isEjecting || $0.isGone || $0.hasNews }
        }
        if card.state.withLock({ $0.isEjecting || $0.hasNews }) { return }
        card.update { state in
            state.suspects = (inventory, found)
            state.facts.suspects = found
        }
    }

    /// Writes a verdict down, and tells it where it is one.
    private func record(_ verdict: CardVerdict, _ facts: CardFacts, checked: String? = nil) async {
        let (insertion, lines, roots) = card.state.withLock { ($0.insertion, $0.lines, $0.roots) }
        do {
            try await shared.journal.setVerdict(
                of: insertion.id, verdict, facts, lines: lines, checked: checked, at: .now)
        } catch {
            // The page and the log report it anyway; the history lacks it.
        }
        if case .notYet = verdict, facts.unmarked == 0 || facts.open > 0 { return }
        let root = roots.keys.min { $0.string < $1.string } ?? card.mount
        var report = VolumeReport(root: root, insertion, verdict, facts, lines)
        report.link = shared.settings.settings.dashboard?.url(hostName: ProcessSetup.hostName).map { "\($0)/#/cards" }
        switch verdict {
        case .unknown:
            shared.log.emit(.volumeUnknown(path: card.mount, volume: report.volume, files: facts.files))
        case .out: break
        default: shared.log.emit(.volumeDone(report))
        }
    }

    @discardableResult
    private func show(_ facts: CardFacts, evaluation: CardEvaluation?) -> CardVerdict {
        card.update { state in
            state.facts = facts
            // They miss the newest changes.
            if evaluation != nil, state.hasNews, facts.stage == .known { state.facts.stage = .asking }
            if let evaluation {
                state.isLooking = false
                (state.others, state.missing) = (evaluation.othersDigest, evaluation.missing)
                (state.fingerprint, state.inventory) = (evaluation.fingerprint, evaluation.inventory)
            }
            if facts.openBytes > 0, state.pace == nil { state.pace = (.now, facts.openBytes) }
            if facts.openBytes == 0 { state.pace = nil }
        }
    }

    // MARK: - Watching over it

    /// Notices a card that was pulled although it is still mounted, and files that come outside of the watched folders.
    private func watchOver() async {
        let (probe, device) = (CardProbe(), FolderIdentity(card.mount).device)
        while !isGone {
            await Task.rest(for: Self.probePause)
            if isGone || card.state.withLock({ $0.isOut || $0.isEjecting }) { continue }
            let answer = await probing.run { [card] in probe.ask(card.mount, device, within: Self.probeTime) }
            let isPulled = answer == .pulled
            await noteFaults(of: answer)
            if isPulled != card.state.withLock(\.isPulled) {
                // At once: a look that is under way may wait for the card for ever.
                card.update { $0.isPulled = isPulled }
                card.touch()
            }
            guard case .there(let now) = answer else { continue }
            // Files have come or gone where no event tells.
            if let counted = card.state.withLock(\.fingerprint), counted != now { card.touch() }
        }
    }

    private func end() async {
        let state = card.state.withLock(\.self)
        guard let goneAt = state.goneAt else { return }
        // The same card may be in again, and its stay go on.
        let others = shared.cards.all.filter { $0.key == card.key && $0 !== card }
        if others.isEmpty { shared.setCardLabels(nil, of: card.key) }
        let isContinued = others.contains { $0.state.withLock(\.insertion.id) == state.insertion.id }
        var open = 0
        do {
            if !isContinued { try await shared.journal.endInsertion(state.insertion.id, at: goneAt) }
            for volume in state.volumes { open += try await shared.journal.open(of: volume).files }
        } catch {
            // The stay ends at the next sight of the card, and its files wait for it in any case.
            open = state.facts.open
        }
        if state.isOut {
            shared.cards.keepShowing(card)
            await record(.out, state.facts)
            return tell(.out)
        }
        // Files may still be on their way where enough destinations have them: then it was safe.
        guard open > 0, !state.verdict.isSafe else { return }
        var facts = state.facts
        (facts.isPulled, facts.open) = (true, open)
        card.state.withLock { $0.isPulled = true }
        let verdict = show(facts, evaluation: nil)
        shared.cards.keepShowing(card)
        await record(verdict, facts)
        tell(.problem)
    }

    // MARK: - Telling

    private func tell(_ state: CardState) {
        let (command, name, text) = card.state.withLock { ($0.onCard, $0.insertion.card.name, $0.verdict.headline) }
        guard let command else { return }
        hook(command).tell(state, volume: name, path: card.mount, text: text)
    }

    /// The state of a card for its lamp.
    private static func state(of verdict: CardVerdict) -> CardState {
        switch verdict {
        case .safe, .empty: .safe
        case .notYet: .copying
        case .callSomebody, .unverified, .othersLeft, .unknown, .pulled: .problem
        case .out: .out
        }
    }

    /// Writes the reports of `card_report`, once for each stay and content.
    private func writeReport(_ verdict: CardVerdict) async {
        guard verdict == .safe, let forms = card.rules?.cardReport, !forms.isEmpty else { return }
        let (row, isNew) = card.state.withLock { state in
            defer { state.reported = state.facts.files }
            return (state.insertion.card, state.reported != state.facts.files)
        }
        guard isNew else { return }
        do {
            _ = try await CardReportWriter(shared: shared, pool: pool).write(row, forms)
        } catch {
            shared.log.emit(.reportFailed(volume: row.name, destination: "", reason: "\(error)"))
        }
    }

    /// Ejects the card where its folder wants that (`on_complete`), once for each stay.
    private func ejectIfWanted(_ verdict: CardVerdict) async {
        guard verdict == .safe, card.rules?.onComplete == .eject else { return }
        let isFirst = card.state.withLock { state in
            // The next look decides.
            if state.hasNews { return false }
            defer { state.hasTriedEject = true }
            return !state.hasTriedEject
        }
        // The log and the page tell why it stays in.
        if isFirst { _ = try? await shared.eject(card, by: "on_complete") }
    }
}
