internal import InletCore

/// In a few words: is it healthy, what is moving, what needs a person.
package struct Health: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        /// Nothing needs anybody.
        case ok
        /// It goes on, and something of it waits for a person.
        case attention
        /// Something has stopped, and goes on only when a person has seen to it.
        case trouble
    }

    package var state: State
    /// For a person who looks for five seconds; what needs him comes first.
    package var sentence: String
    /// What needs a person, the worst first, each with what to do about it; at most `most`, and how many more there are.
    package var needs: [String]
    /// The same one by one, as many, and after them what is worth knowing and needs nobody; nil from an agent of an
    /// older version, as `needing`.
    package var findings: [HealthFinding]?
    /// How many things need a person.
    package var needing: Int?

    private static let most = 8

    package init(_ report: StatusReport) {
        let all = Self.findings(report)
        let needs = all.filter { $0.state == .trouble } + all.filter { $0.state == .attention }
        let moving = Self.moving(report)
        state = needs.first?.state ?? .ok
        needing = needs.count
        findings = Array(needs.prefix(Self.most)) + Array(all.filter { $0.state == .ok }.prefix(Self.most))
        self.needs = needs.prefix(Self.most).map(\.line)
        if needs.count > Self.most { self.needs.append("and \(needs.count - Self.most) more") }
        guard let worst = needs.first else {
            // What came back from a destination may go through the next time, and is no news; but it is not well.
            let again = report.queue.retrying
            sentence =
                again == 0
                ? "All is well: \(moving)."
                : "It goes on: \(moving), \(again) after an error ('inlet queue list' says which)."
            return
        }
        let others = needs.count == 1 ? "" : " (and \(needs.count - 1) more)"
        sentence = "\(state == .trouble ? "Trouble" : "Needs you"): \(worst.text)\(others); \(moving)."
    }

    private static func moving(_ report: StatusReport) -> String {
        let queue = report.queue
        if queue.in_flight == 0, queue.waiting == 0 { return "nothing is moving, nothing waits" }
        let moving = queue.in_flight == 0 ? "nothing is moving" : "\(queue.in_flight) moving"
        return queue.waiting == 0 ? moving : "\(moving), \(queue.waiting) waiting"
    }
}
