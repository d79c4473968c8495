/// A notification as a person reads it, on a phone for example. Follows from an event and its content alone.
package struct NotificationMessage: Sendable, Equatable {
    package var title: String
    /// Lines, without the link.
    package var text: String
    /// Whether a person is needed: services give it their high priority.
    package var isUrgent = false
    /// An http(s) address to open.
    package var link: String?
    /// Short words; ntfy shows these as pictures.
    package var tags: [String] = []

    package init(title: String, text: String, isUrgent: Bool = false, link: String? = nil, tags: [String] = []) {
        (self.title, self.text, self.isUrgent, self.link, self.tags) = (title, text, isUrgent, link, tags)
    }

    /// The message of a test notification.
    package static func test(host: String) -> NotificationMessage {
        NotificationMessage(
            title: "Test from Inlet on \(host)", text: "Notifications from this machine arrive here.",
            tags: [Tag.done])
    }

    /// - Parameters:
    ///   - payload: the JSON that webhooks get for the event.
    ///   - host: this machine's name.
    package init(_ event: NotificationEvent, _ payload: [UInt8], host: String) {
        let content = Content(payload)
        switch event {
        case .delivered, .failed, .rejected: self = Self.file(event, content)
        case .batchDone: self = Self.batch(content)
        case .destinationDown:
            self.init(
                title: "Destination down: \(content.text("name"))",
                text: Self.lines([content.optional("reason"), "Inlet retries automatically."]), isUrgent: true,
                tags: [Tag.alarm])
        case .destinationUp:
            self.init(
                title: "Destination up: \(content.text("name"))", text: "Its deliveries continue.", tags: [Tag.done])
        case .volumeDone, .volumeProblem: self = Self.cards([CardNotice(event, content)])
        case .rootPaused:
            self.init(
                title: "Folder paused: \(content.text("path"))", text: content.text("reason"), isUrgent: true,
                tags: [Tag.alarm])
        case .rootQuiet:
            self.init(
                title: "Folder quiet: \(content.text("path"))",
                text: "\(content.since) no new file came; one is expected every \(content.text("expect")).",
                isUrgent: true, tags: [Tag.alarm])
        case .rootRecovered:
            self.init(
                title: "Folder active: \(content.text("path"))", text: "New files come again.", tags: [Tag.done])
        case .agentSilent:
            self.init(
                title: "Agent silent: \(content.text("name"))",
                text: "\(content.since) the fleet heard nothing of it. Its files wait for it.", isUrgent: true,
                tags: [Tag.alarm])
        }
        sign(host)
    }

    /// One message about several cards, those with problems first.
    package init(cards: [(event: NotificationEvent, payload: [UInt8])], host: String) {
        self = Self.cards(cards.map { CardNotice($0.event, Content($0.payload)) })
        sign(host)
    }

    /// Several machines may send to the same phone.
    private mutating func sign(_ host: String) { text = Self.lines([text, "Inlet on \(DisplayText.escape(host))"]) }

    private static func lines(_ lines: [String?]) -> String {
        lines.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "\n")
    }

    /// Names of emoji in ntfy.
    private enum Tag {
        static let done = "white_check_mark"
        static let alarm = "rotating_light"
    }
}

// MARK: - Files and batches

extension NotificationMessage {
    /// More lines do not fit a phone.
    private static let mostLines = 10

    private static func file(_ event: NotificationEvent, _ content: Content) -> NotificationMessage {
        let path = content.text("path")
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let verb =
            switch content.optional("state") ?? event.rawValue {
            case "delivered": "Delivered"
            case "rejected": "Rejected"
            case "expired": "Expired"
            case "gone": "Missing"
            default: "Failed"
            }
        let deliveries = content.objects("deliveries").prefix(mostLines)
        let isGood = event == .delivered
        let places = deliveries.map { delivery in
            let reason = delivery.optional("reason").map { ": \($0)" } ?? ""
            return "\(delivery.text("destination")): \(delivery.text("state"))\(reason)"
        }
        return NotificationMessage(
            title: "\(verb): \(name)",
            text: lines([path, content.size("size"), content.optional("reason")] + places), isUrgent: !isGood,
            link: isGood ? deliveries.lazy.compactMap { $0.link("url") }.first : nil,
            tags: [isGood ? Tag.done : Tag.alarm])
    }

    private static func batch(_ content: Content) -> NotificationMessage {
        let files = content.number("files") ?? 0
        let missing = content.objects("not_delivered")
        let outcome = content.text("outcome")
        let isGood = outcome == "complete"
        // The lists may leave files out, the counts do not.
        let good = (content["counts"]?.object ?? [:]).reduce(Int64(0)) { sum, count in
            ["delivered", "duplicate"].contains(count.key) ? sum + (count.value.integer ?? 0) : sum
        }
        var said = missing.prefix(mostLines).map { file in
            "\(file.text("path")): \(file.optional("reason") ?? file.text("state"))"
        }
        if missing.count > said.count { said.append("… and \(missing.count - said.count) more") }
        return NotificationMessage(
            title: "\(outcome.prefix(1).uppercased())\(outcome.dropFirst()): \(content.text("name"))",
            text: lines([content.text("path"), "\(good) of \(files) files delivered"] + said), isUrgent: !isGood,
            tags: [isGood ? Tag.done : Tag.alarm])
    }
}

// MARK: - Cards

/// A removable volume's notification.
private struct CardNotice {
    let name: String
    let verdict: Verdict
    let lines: [String]
    let link: String?

    enum Verdict: String, CaseIterable {
        case problem = "CALL SOMEBODY"
        case safe = "SAFE TO REMOVE"
        /// From an agent that did not ask the destinations: no claim.
        case done = "Card done"
    }

    init(_ event: NotificationEvent, _ content: Content) {
        name = content.text("name")
        // Safety is claimed only where both say so.
        let state = content.optional("state")
        verdict = event == .volumeProblem || state == "problem" ? .problem : state == "safe" ? .safe : .done
        let sizes = [content.number("files").map { Int($0).counted("file") }, content.size("bytes")]
        let size = sizes.compactMap(\.self).joined(separator: ", ")
        lines = ([content.optional("text"), size] + content.texts("lines")).compactMap(\.self).filter { !$0.isEmpty }
        link = content.link("link")
    }
}

extension NotificationMessage {
    private static func cards(_ notices: [CardNotice]) -> NotificationMessage {
        let groups = CardNotice.Verdict.allCases.map { verdict in (verdict, notices.filter { $0.verdict == verdict }) }
        let sorted = groups.flatMap(\.1)
        let title = groups.filter { !$0.1.isEmpty }.map { verdict, cards in
            "\(verdict.rawValue): \(cards.map(\.name).joined(separator: ", "))"
        }.joined(separator: " · ")
        let blocks = sorted.map { card in
            let head = sorted.count > 1 ? ["\(card.verdict.rawValue): \(card.name)"] : []
            return (head + card.lines).joined(separator: "\n")
        }
        let isUrgent = sorted.contains { $0.verdict == .problem }
        return NotificationMessage(
            title: title, text: blocks.joined(separator: "\n\n"), isUrgent: isUrgent,
            link: sorted.lazy.compactMap(\.link).first, tags: [isUrgent ? Tag.alarm : Tag.done])
    }
}

// MARK: - Content

/// The members of a payload, safe to show.
private struct Content {
    private let members: JSONObject

    init(_ payload: [UInt8]) { members = JSON.object(payload) ?? [:] }
    private init(_ members: JSONObject) { self.members = members }

    subscript(name: String) -> JSONValue? { members[name] }

    func optional(_ name: String) -> String? { members[name]?.string.map { DisplayText.escape($0) } }
    func text(_ name: String) -> String { optional(name) ?? "" }
    func number(_ name: String) -> Int64? { members[name]?.integer }
    func size(_ name: String) -> String? { number(name).map(ByteText.format) }
    func objects(_ name: String) -> [Content] {
        (members[name]?.array ?? []).compactMap { $0.object.map(Content.init) }
    }
    func texts(_ name: String) -> [String] {
        (members[name]?.array ?? []).compactMap { $0.string.map { DisplayText.escape($0) } }
    }

    /// `Since 26 November 10:00`.
    var since: String {
        optional("since").flatMap { WallTime(rfc3339: $0) }.map { "Since \($0.day()) \($0.clock())" } ?? "Lately"
    }

    /// An address that services may turn into something to press.
    func link(_ name: String) -> String? {
        optional(name).flatMap { $0.hasPrefix("https://") || $0.hasPrefix("http://") ? $0 : nil }
    }
}

// MARK: - Limits

extension String {
    /// The text itself, or as many whole characters of it as fit, and an ellipsis.
    ///
    /// - Parameter weight: what a piece of text counts for the service.
    package func shortened(to limit: Int, by weight: (Substring) -> Int) -> String {
        if weight(self[...]) <= limit { return self }
        let end = "…"
        var (left, place) = (limit - weight(end[...]), startIndex)
        while place < endIndex {
            let next = index(after: place)
            left -= weight(self[place..<next])
            if left < 0 { break }
            place = next
        }
        return self[..<place] + end
    }
}
