internal import InletAgent
internal import InletCore
internal import InletJournal
internal import InletLinux

/// Cards in the readers, their history, and orders about them.
extension Endpoints {
    package static let cards = TypedEndpoint.get(
        "cards", "The cards in the readers, and whether they may be taken out.", need: .cards
    ) {
        call in try await call.control.cards()
    }

    package static let cardHistory = TypedEndpoint.get(
        "cards/history", "The stays of cards in a reader, newest first.", query: [.card, .limit]
    ) { call in
        try await call.control.agent.journal.insertions(of: call.text(.card), limit: call.limit()).map {
            CardStayReport($0)
        }
    }

    package static let labelCard = order(
        "label", "Names a card's roll, camera, operator and a note.", CardLabelOrder.self
    ) { control, card, labels in try await control.label(card: card, labels) }

    package static let leaveOthers = order("leave", "The other files on a card may stay there.") {
        control, card in
        try await control.agent.leaveOthers(on: card, by: control.by)
        return "the other files on \(card) may stay"
    }

    package static let resendMissing = order("resend", "Sends files of a card again that a destination has lost.") {
        control, card in
        let files = try await control.agent.resendMissing(on: card, by: control.by)
        return "\(files.counted("file is", "files are")) sent again"
    }

    package static let ejectCard = order("eject", "Unmounts a card, once it is safe.", within: .seconds(90)) {
        control, card in try await control.agent.eject(card: card, by: control.by)
    }

    private static func order(
        _ verb: String, _ summary: String, within deadline: Duration = .seconds(60),
        _ work: @escaping @Sendable (LocalControl, String) async throws -> String
    ) -> TypedEndpoint<NoBody, CommandReport> {
        .post("cards/{card}/\(verb)", summary, within: deadline) { call in
            try await CommandReport.answering { try await work(call.control, call.text(.card) ?? "") }
        }
    }

    private static func order<Body: Codable & Sendable & NamedSchema>(
        _ verb: String, _ summary: String, _ body: Body.Type,
        _ work: @escaping @Sendable (LocalControl, String, Body) async throws -> String
    ) -> TypedEndpoint<Body, CommandReport> {
        .post("cards/{card}/\(verb)", summary, body) { call, given in
            try await CommandReport.answering { try await work(call.control, call.text(.card) ?? "", given) }
        }
    }
}

extension Parameter {
    package static let card = Parameter("card", .text, "A card's name or UUID.")
}

extension CommandReport {
    /// The answer to an order that may be refused.
    fileprivate static func answering(_ body: () async throws -> String) async throws -> CommandReport {
        do {
            return .done(DisplayText.escape(try await body()))
        } catch let refusal as Refusal {
            return .refused(DisplayText.escape(refusal.description))
        } catch let fault as PatternError {
            return .refused(fault.message)
        }
    }
}

extension LocalControl {
    func cards() async throws -> CardsReport {
        let rolls = try await agent.rolls()
        return CardsReport(
            cards: agent.cards.map { CardReport($0) }, next_roll: rolls.next, missing_rolls: rolls.missing,
            patterns: agent.live?.cardPatterns.map(\.display) ?? [], at: WallTime.now.rfc3339Seconds)
    }

    func label(card name: String, _ order: CardLabelOrder) async throws -> String {
        let known = agent.cards.first { status in
            [status.insertion.card.name, status.insertion.card.uuid].contains(name)
        }?.insertion.labels
        let missing = try await agent.label(card: name, order.labels(over: known ?? CardLabels()), by: by)
        return "\(name) is labelled" + (missing.map { "; \($0)" } ?? "")
    }
}
