/// The one answer about a card: whether a person may take it out.
package enum CardVerdict: Sendable, Equatable {
    /// Everything on it is accounted for, and proved where it belongs.
    case safe
    /// It goes on by itself; so many files are not there yet. 0 where that is not known yet.
    case notYet(files: Int)
    /// Only a person can go on, with the reason.
    case callSomebody(String)
    /// Everything is copied, but only sizes were compared (`verify: size`).
    case unverified
    /// Files lie on it that Inlet did not take: a person decides about them (`volume_safe: everything`).
    case othersLeft(files: Int)
    case empty
    /// No pattern fits it.
    case unknown(files: Int)
    /// It was taken out too early; so many files are not copied.
    case pulled(files: Int)
    /// It was ejected.
    case out

    /// - Parameter settings: the watched folder's.
    package init(_ facts: CardFacts, _ settings: CardRules) {
        self = Self.decide(facts, settings)
    }

    private static func decide(_ facts: CardFacts, _ settings: CardRules) -> Self {
        if facts.isOut { return .out }
        let waiting = facts.open + facts.unmarked
        if facts.isPulled {
            let isCounted = facts.stage == .known || facts.isTakenIn
            return .pulled(files: isCounted ? waiting : max(waiting, facts.files - facts.accounted))
        }
        if facts.isUnknown { return .unknown(files: facts.files) }
        if let reason = fault(facts) { return .callSomebody(reason) }
        if waiting > 0 || facts.stage != .known { return .notYet(files: waiting) }
        let silent = facts.places.reduce(0) { max($0, $1.silent) }
        if silent > 0, facts.accounted < facts.files - facts.otherFiles { return .notYet(files: silent) }
        if facts.short > 0 { return .callSomebody(shortage(facts)) }
        if facts.files == 0 { return facts.isWhole ? .empty : .callSomebody("its files cannot be listed") }
        if !facts.isWhole { return .callSomebody("not everything on it can be listed") }
        if settings.counts == .everything, facts.otherFiles > 0, !facts.othersMayStay {
            return .othersLeft(files: facts.otherFiles)
        }
        // Nothing may be called safe that was not counted: a last line of defence.
        guard facts.accounted + facts.otherFiles >= facts.files else {
            return .notYet(files: facts.files - facts.accounted - facts.otherFiles)
        }
        if !settings.acceptsSize, facts.places.contains(where: { $0.sized > 0 }) { return .unverified }
        return .safe
    }

    /// A fault that waiting does not mend, the worst first.
    private static func fault(_ facts: CardFacts) -> String? {
        if case .differs(let paths) = facts.source {
            let what = paths.count.counted("file reads", "files read")
            return "\(what) differently the second time, or differs from the card's checksum list: \(paths.first ?? "")"
        }
        if facts.unchecked > 0 {
            return "\(facts.unchecked.counted("file has", "files have")) no checksum for the second read: "
                + "use 'verify' with one, or source_check: off"
        }
        if facts.unread > 0 { return "\(facts.unread.counted("file or folder", "files or folders")) cannot be read" }
        if facts.failed > 0 { return "\(facts.failed.counted("file was", "files were")) not delivered" }
        // With enough copies elsewhere a loss is only told.
        let places = facts.places.filter { $0.missing > 0 }
        guard facts.stage == .known, facts.accounted + facts.open + facts.otherFiles < facts.files else { return nil }
        if let place = places.first {
            let files = place.missing.counted("file is", "files are")
            return "\(files) no longer at \(place.name): send again?"
        }
        if facts.places.allSatisfy({ $0.silent == 0 }), let place = facts.places.first(where: { $0.unconfirmed > 0 }) {
            let files = place.unconfirmed.counted("file", "files")
            return "\(place.name) cannot confirm \(files)\(place.reason.map { ": \($0)" } ?? "")"
        }
        return nil
    }

    private static func shortage(_ facts: CardFacts) -> String {
        let files = facts.short.counted("file has", "files have")
        return "\(files) fewer copies than \(facts.copies ?? facts.places.count)"
    }

    /// The word of this state in the API, in hooks and in the log.
    package var word: String {
        switch self {
        case .safe: "safe"
        case .notYet: "not_yet"
        case .callSomebody: "call_somebody"
        case .unverified: "unverified"
        case .othersLeft: "others_left"
        case .empty: "empty"
        case .unknown: "unknown"
        case .pulled: "pulled"
        case .out: "out"
        }
    }

    /// The sentence that is seen from three metres.
    package var headline: String {
        switch self {
        case .safe: "SAFE TO REMOVE"
        case .notYet(let files): files > 0 ? "NOT YET: \(files.counted("file"))" : "NOT YET"
        case .callSomebody(let reason): "CALL SOMEBODY: \(reason)"
        case .unverified: "NOT VERIFIED: copied, sizes equal"
        case .othersLeft(let files): "NOT YET: \(files.counted("other file")) on it"
        case .empty: "NOTHING ON IT"
        case .unknown(let files): "NOT KNOWN HERE: \(files.counted("file"))"
        case .pulled(let files): files > 0 ? "PULLED: \(files.counted("file")) not copied" : "PULLED"
        case .out: "OUT: you can take it"
        }
    }

    /// Whether a person who waits may take the card: only this is green.
    package var isSafe: Bool { self == .safe || self == .empty || self == .out }

    /// Whether it stays so until a person does something.
    package var needsSomebody: Bool {
        switch self {
        case .callSomebody, .unverified, .othersLeft, .unknown, .pulled: true
        case .safe, .notYet, .empty, .out: false
        }
    }
}

/// The rules of a watched folder about its cards.
package struct CardRules: Sendable, Equatable {
    /// `volume_safe`
    package enum Counting: String, Sendable, CaseIterable {
        /// Every file on the card counts.
        case everything
        /// Only files that a route takes count; the others are shown.
        case routed
    }

    /// `source_check`
    package enum SecondRead: String, Sendable, CaseIterable {
        case off
        /// Every file.
        case reread
        /// Some of them, with the biggest and the last.
        case sample
    }

    package var counts = Counting.everything
    package var acceptsSize = false
    package var secondRead = SecondRead.off
    /// How many disks must have each file; nil is every destination of its route.
    package var copies: Int?

    package init() {}
}

/// A line of the list below a verdict.
package struct CardLine: Sendable, Equatable, Codable {
    package enum Mark: String, Sendable, Codable {
        case good
        case waiting
        case bad
        case note
    }

    package var mark: Mark
    package var text: String

    package init(_ mark: Mark, _ text: String) { (self.mark, self.text) = (mark, text) }
}

extension CardFacts {
    /// The list below the verdict.
    ///
    /// - Parameters:
    ///   - identity: how the card is known, such as `UUID 1234-ABCD`.
    ///   - time: writes a moment for people.
    package func lines(_ settings: CardRules, identity: String, time: (WallTime) -> String) -> [CardLine] {
        if isUnknown { return [CardLine(.bad, "no watched folder fits this disk: \(files.counted("file")) on it")] }
        return [contentLine(settings)]
            + otherLines(settings) + troubleLines
            + places.map { place in
                CardLine(Self.mark(place, settings), place.words(time: time))
            } + copyLines + sourceLines(identity) + suspectLines + [errorLine(time)]
    }

    private func contentLine(_ settings: CardRules) -> CardLine {
        if stage == .listing { return CardLine(.waiting, "the card is being listed") }
        let rest = files - accounted - (othersMayStay || settings.counts == .routed ? otherFiles : 0)
        if rest <= 0, isWhole, unread == 0, stage == .known {
            return CardLine(
                .good, "everything on the card is accounted for: \(files.counted("file")), \(ByteText.format(bytes))")
        }
        let total = "\(files.counted("file")), \(ByteText.format(bytes))"
        let open = open > 0 ? "; \(open.counted("file")), \(ByteText.format(openBytes)) to copy" : ""
        let part = isWhole ? "" : "; not everything could be listed"
        return CardLine(self.open > 0 || stage != .known ? .waiting : .bad, "\(total) on the card\(open)\(part)")
    }

    private func otherLines(_ settings: CardRules) -> [CardLine] {
        let isFine = settings.counts == .routed || othersMayStay
        // Files that wait for their marker have a line of their own.
        var lines = others.filter { $0.reason != .unrouted || $0.files != unmarked }.map { other in
            CardLine(isFine ? .note : .bad, other.words + (othersMayStay ? " (they may stay)" : ""))
        }
        if systemFiles > 0 {
            lines.append(
                CardLine(.note, "not counted: \(systemFiles.counted("file")) of operating systems, such as .DS_Store"))
        }
        if hasClosedLostFound { lines.append(CardLine(.note, "not looked into: lost+found, which only root may list")) }
        return lines
    }

    private var troubleLines: [CardLine] {
        var lines: [CardLine] = []
        if awaitsLabels { lines.append(CardLine(.waiting, "files wait for the card's roll: name it")) }
        if unmarked > 0 {
            lines.append(CardLine(.waiting, "\(unmarked.counted("file waits for its", "files wait for their")) marker"))
        }
        if unread > 0 {
            lines.append(CardLine(.bad, "\(unread.counted("file or folder", "files or folders")) cannot be read"))
        }
        if failed > 0 { lines.append(CardLine(.bad, "\(failed.counted("file was", "files were")) not delivered")) }
        if isPulled { lines.append(CardLine(.bad, "the card no longer answers")) }
        return lines
    }

    private static func mark(_ place: CardPlace, _ settings: CardRules) -> CardLine.Mark {
        if place.missing + place.failed + place.unconfirmed > 0 { return .bad }
        if place.silent + place.open > 0 { return .waiting }
        return place.sized > 0 && !settings.acceptsSize ? .bad : .good
    }

    private var copyLines: [CardLine] {
        var lines = shared.map { CardLine(.note, $0) }
        if short > 0 {
            lines.append(
                CardLine(
                    .bad,
                    "\(short.counted("file has", "files have")) fewer than \((copies ?? 1).counted("copy", "copies"))"))
        }
        return lines
    }

    private func sourceLines(_ identity: String) -> [CardLine] {
        switch source {
        case .off: [CardLine(.good, "the card is the one that was read (\(identity))")]
        case .running(let done, let all): [CardLine(.waiting, "reading the card a second time: \(done) of \(all)")]
        case .same(let files):
            [
                CardLine(
                    .good, "the card is the one that was read (\(identity)); \(files.counted("file")) read twice, equal"
                )
            ]
        case .listed(let files, let list):
            [CardLine(.good, "the card is the one that was read (\(identity)); \(files.counted("file")) as in \(list)")]
        case .differs(let paths): paths.prefix(10).map { CardLine(.bad, "not the same at the second look: \($0)") }
        }
    }

    private var suspectLines: [CardLine] {
        listFaults.prefix(5).map { CardLine(.note, "a checksum list on the card cannot be used: \($0)") }
            + suspects.prefix(20).map { CardLine(.note, "check it before you format: \($0)") }
    }

    private func errorLine(_ time: (WallTime) -> String) -> CardLine {
        if readErrors.reads == 0 {
            let slow = readErrors.slow > 0 ? "; \(readErrors.slow.counted("slow read"))" : ""
            return CardLine(readErrors.slow > 0 ? .note : .good, "read errors 0\(slow)")
        }
        let last = readErrors.lastRead.map { ", the last on \(time($0))" } ?? ""
        return CardLine(.note, "\(readErrors.reads.counted("read error"))\(last): replace the card")
    }
}
