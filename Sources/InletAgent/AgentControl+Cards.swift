package import InletCore
package import InletJournal
internal import InletLinux
internal import Synchronization
package import SystemPackage

/// A card in a reader, for people.
package struct CardStatus: Sendable {
    package var insertion: InsertionRow
    package var mount: FilePath
    /// The watched folders on it.
    package var roots: [FilePath]
    package var verdict: CardVerdict
    package var facts: CardFacts
    package var lines: [CardLine]
    package var decidedAt: WallTime?
    /// The watched folder's settings; nil for a disk that no pattern fits.
    package var settings: WatchSettings?
    /// How long the rest will take at the present pace; nil where that is unknown.
    package var left: Duration?

    init(_ card: Card, at now: WallTime = .now) {
        let state = card.state.withLock(\.self)
        (insertion, mount, roots) = (state.insertion, card.mount, state.roots.keys.sorted { $0.string < $1.string })
        (verdict, facts, lines, decidedAt) = (state.verdict, state.facts, state.lines, state.decidedAt)
        settings = card.rules
        if let pace = state.pace, !facts.isPulled, facts.openBytes > 0, pace.open > facts.openBytes {
            let seconds = max(1, Double((now - pace.since).components.seconds))
            left = .seconds(Int(seconds * Double(facts.openBytes) / Double(pace.open - facts.openBytes)))
        }
    }
}

/// The cards in the readers, and what a person orders about them.
extension AgentControl {
    /// The cards that are in a reader now, with those that just went out or went too early, in the order of their insertion; none while no agent runs.
    package var cards: [CardStatus] {
        (live?.shared.cards.shown(at: .now) ?? []).map { CardStatus($0) }.sorted { $0.insertion.id < $1.insertion.id }
    }

    /// The roll that comes next, and the rolls that are missing among the last ones.
    package func rolls() async throws(JournalError) -> (next: String?, missing: [String]) {
        let known = try await journal.rolls(limit: Self.rememberedRolls)
        return (known.first.flatMap { CardLabels.next(after: $0) }, CardLabels.gaps(in: known))
    }

    private static let rememberedRolls = 200

    /// - Parameter name: a card's name or UUID.
    private func card(_ name: String) throws(Refusal) -> (card: Card, shared: Shared) {
        guard let live else { throw Refusal("no agent is running") }
        if let card = live.shared.cards[name] { return (card, live.shared) }
        let known = cards.map(\.insertion.card.name)
        throw Refusal(
            "no card '\(DisplayText.escape(name))' is in a reader\(Suggestion.hint(name, in: known)); 'inlet cards' lists them"
        )
    }

    /// Names a card: files that waited for that go on.
    ///
    /// - Returns: what is missing in the row of rolls now, as a sentence, or nil.
    package func label(card name: String, _ labels: CardLabels, by: String) async throws -> String? {
        let (card, shared) = try card(name)
        let labels = try labels.validated()
        let insertion = card.state.withLock(\.insertion)
        try await journal.setLabels(labels, of: insertion.id)
        card.touch { $0.insertion.labels = labels }
        shared.setCardLabels(labels, of: card.key)
        let words = [labels.roll, labels.camera, labels.operator].compactMap(\.self).joined(separator: ", ")
        shared.log.emit(.cardLabelled(volume: insertion.card.name, labels: words, by: by))
        let missing = try await rolls().missing
        guard labels.roll != nil, !missing.isEmpty else { return nil }
        return "no card was named \(missing.joined(separator: ", "))"
    }

    /// Files on a card that Inlet did not take may stay there.
    package func leaveOthers(on name: String, by: String) async throws {
        let (card, shared) = try card(name)
        let (insertion, others, count) = card.state.withLock { ($0.insertion, $0.others, $0.facts.otherFiles) }
        guard let others, count > 0 else { throw Refusal("there are no other files on '\(insertion.card.name)'") }
        try await journal.setOthersLeft(others, of: insertion.id)
        card.touch { $0.insertion.othersLeft = others }
        shared.log.emit(.cardOthersLeft(volume: insertion.card.name, files: count, by: by))
    }

    /// Sends files again that a destination has lost. - Returns: how many.
    package func resendMissing(on name: String, by: String) async throws -> Int {
        let (card, shared) = try card(name)
        let state = card.state.withLock(\.self)
        guard !state.missing.isEmpty else {
            let isArchived = state.facts.places.contains { $0.missing > 0 }
            throw Refusal(
                isArchived
                    ? "the missing files are archived on the card: move them back to where they were, and send them again then"
                    : "nothing of '\(state.insertion.card.name)' is missing anywhere")
        }
        var sent = 0
        for (file, deliveries) in state.missing.sorted(by: { $0.key < $1.key }) {
            let uptimes = shared.destinations.uptimes()
            if try await journal.resend(deliveries, of: file, partly: true, uptimes: uptimes, at: .now) { sent += 1 }
        }
        guard sent > 0 else {
            throw Refusal(
                "the missing files have the same content as files of other cards, which were sent instead: put those in, "
                    + "and send theirs again")
        }
        // The journal may know them by the place where the card was then.
        for (root, entry) in state.roots { try await shared.filesReturn(to: root, of: entry.volume) }
        shared.signals.raiseDeliverable()
        shared.log.emit(.cardResent(volume: state.insertion.card.name, files: sent, by: by))
        card.touch()
        return sent
    }

    /// Takes a card out, once it is safe.
    ///
    /// - Returns: what was done.
    /// - Throws: `Refusal` with the reason while something is not proved, or where the system refuses.
    package func eject(card name: String, by: String) async throws -> String {
        let (card, shared) = try card(name)
        return try await shared.eject(card, by: by)
    }
}

extension Shared {
    private static let ejectTime = Duration.seconds(60)

    func eject(_ card: Card, by: String) async throws(Refusal) -> String {
        let (verdict, name, hasNews) = card.state.withLock {
            ($0.verdict, $0.insertion.card.name, $0.hasNews || $0.isLooking)
        }
        guard verdict.isSafe, !hasNews else {
            // Something has just happened on it, and was not looked at yet.
            let verdict = verdict.isSafe ? .notYet(files: 0) : verdict
            throw Refusal("'\(name)' stays in: \(verdict.headline)")
        }
        let pool = BlockingPool(name: "eject", threads: 1)
        defer { pool.shutdown() }
        card.state.withLock { $0.isEjecting = true }
        defer { card.state.withLock { $0.isEjecting = false } }
        // Another card may be in its place, and is not safe because this one was.
        guard await pool.run({ card.state.withLock(\.isOut) || card.isMounted }) else {
            throw Refusal("'\(name)' is not mounted at \(card.mount.display) any more")
        }
        switch await VolumeEject.eject(card.mount, timeout: Self.ejectTime, pool: pool) {
        case .out(let text):
            card.update { $0.isOut = true }
            // Its watcher may have seen it go before.
            if card.state.withLock(\.isGone) { cards.keepShowing(card) }
            card.touch()
            log.emit(.cardEjected(volume: name, result: text, by: by))
            return text
        case .refused(let reason):
            log.emit(.cardNotEjected(volume: name, reason: reason))
            throw Refusal(reason)
        }
    }
}
