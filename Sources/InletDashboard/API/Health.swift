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

    private static let most = 8

    package init(_ report: StatusReport) {
        let all = Self.needs(report)
        let needs = all.filter { $0.state == .trouble } + all.filter { $0.state != .trouble }
        let moving = Self.moving(report)
        state = needs.first?.state ?? .ok
        self.needs = needs.prefix(Self.most).map(\.text)
        if needs.count > Self.most { self.needs.append("and \(needs.count - Self.most) more") }
        guard let worst = needs.first else {
            sentence = "All is well: \(moving)."
            return
        }
        let others = needs.count == 1 ? "" : " (and \(needs.count - 1) more)"
        sentence = "\(state == .trouble ? "Trouble" : "Needs you"): \(worst.short)\(others); \(moving)."
    }

    /// One thing that needs a person: in short for the sentence, and with its remedy.
    private struct Need {
        var state: State
        var short: String
        var remedy: String

        init(_ state: State, _ short: String, _ remedy: String) {
            (self.state, self.short, self.remedy) = (state, short, remedy)
        }

        var text: String { "\(short): \(remedy)" }
    }

    private static func needs(_ report: StatusReport) -> [Need] {
        agent(report) + report.destinations.compactMap(destination) + report.roots.compactMap(root) + files(report)
    }

    private static func agent(_ report: StatusReport) -> [Need] {
        var needs: [Need] = []
        if report.journal_failing {
            needs.append(Need(.trouble, "the journal cannot be written", "is the disk of state_dir full?"))
        }
        if !report.running {
            let remedy = "start it with 'inlet run', or 'systemctl start inlet'"
            needs.append(Need(report.pending > 0 ? .trouble : .attention, "no agent runs", remedy))
        }
        if let page = report.dashboard, page.state == .failing {
            let why = page.error.map { " (\(DisplayText.escape($0)))" } ?? ""
            needs.append(
                Need(.attention, "the page cannot be served", "is dashboard.listen right, and its port free?\(why)"))
        }
        let ways = report.destinations
        if report.running, ways.count > 1, ways.allSatisfy({ $0.state == "down" }) {
            needs.append(Need(.trouble, "all destinations are down", "is this machine's network there?"))
        }
        return needs
    }

    private static func destination(_ destination: StatusReport.Destination) -> Need? {
        let why = destination.last_error.map { " (\(DisplayText.escape($0)))" } ?? ""
        switch destination.state {
        case "credentials refused":
            return Need(
                .trouble, "\(destination.name) refuses its credentials",
                "put new ones where the configuration reads them; they are tried by themselves\(why)")
        case "down":
            return Need(
                .attention, "\(destination.name) is down",
                "it is tried again by itself; 'inlet resume \(destination.name)' tries now\(why)")
        case "paused":
            return Need(
                .attention, "\(destination.name) is paused", "'inlet resume \(destination.name)' lets it go on")
        default: return nil
        }
    }

    private static func root(_ root: StatusReport.Root) -> Need? {
        let (path, state) = (root.path, DisplayText.escape(root.state))
        if state.hasPrefix("failing") {
            return Need(.trouble, "\(path) cannot be watched", "'inlet check' says more (\(state))")
        }
        if state.hasPrefix("paused") {
            return Need(
                .trouble, "\(path) is not what it was",
                "if it is right as it is, 'inlet resume --root \(path)' goes on (\(state))")
        }
        if state == "missing" {
            return Need(.attention, "\(path) is not there", "mount or make it; it is watched as soon as it is there")
        }
        return nil
    }

    private static func files(_ report: StatusReport) -> [Need] {
        var needs: [Need] = []
        for state in [FileState.failed, .expired, .rejected] {
            guard let count = report.files[state.rawValue], count > 0 else { continue }
            let again = state == .rejected ? "" : ", 'inlet queue retry' sends them again"
            needs.append(
                Need(
                    .attention, "\(files(count)) \(state.rawValue)",
                    "'inlet queue list --state \(state.rawValue)' says why\(again)"))
        }
        if report.queue.parked > 0 {
            needs.append(
                Need(
                    .attention, "\(report.queue.parked) deliveries have no destination",
                    "it left the configuration; put it back, or cancel them with 'inlet queue cancel'"))
        }
        if let given = report.notices_failed, given > 0 {
            needs.append(
                Need(.attention, "\(given) notices were not taken", "try their receivers with 'inlet notify test'"))
        }
        return needs
    }

    private static func moving(_ report: StatusReport) -> String {
        let queue = report.queue
        if queue.in_flight == 0, queue.waiting == 0 { return "nothing is moving, nothing waits" }
        let moving = queue.in_flight == 0 ? "nothing is moving" : "\(queue.in_flight) moving"
        return queue.waiting == 0 ? moving : "\(moving), \(queue.waiting) waiting"
    }

    private static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }
}
