/// A fleet's error in the words of events, `inlet status`, `inlet check` and the page: here alone.
extension FleetError {
    /// Facts beside the error itself, for the sentence about it.
    package struct Circumstances: Sendable {
        /// `db.example:5432`.
        package var server: String
        /// This agent's name there.
        package var agent: String
        package var since: WallTime?
        /// Shares that pause meanwhile.
        package var paused: [String]
        /// Agents that have not reported since commits were lost.
        package var waitingFor: [String]

        package init(
            server: String, agent: String = "this agent", since: WallTime? = nil, paused: [String] = [],
            waitingFor: [String] = []
        ) {
            (self.server, self.agent, self.since) = (server, agent, since)
            (self.paused, self.waitingFor) = (paused, waitingFor)
        }
    }

    /// The cause and what it means, in one sentence without its end: `fleet: cannot reach db.example:5432 …`.
    package func sentence(_ place: Circumstances) -> String {
        let server = DisplayText.escape(place.server)
        let agent = DisplayText.escape(place.agent)
        let message = DisplayText.escape(message)
        let since = place.since.map { " since \($0.clock())" } ?? ""
        let words =
            switch code {
            // These name the server, or the library, themselves.
            case .away: "\(message)\(since); local folders go on" + Self.paused(place.paused)
            case .untrusted, .refused, .library, .journal, .argument, .fault: message
            case .unknownAgent: "\(agent) is not known at \(server)"
            case .isAlive: "another process of \(agent) is alive"
            case .usedTwice: "\(agent) was used elsewhere since this journal was last in the fleet"
            case .nothingGranted: nothing(place.waitingFor, since)
            case .reportFirst: "\(agent) reports again what it has, because \(server) lost commits"
            case .wentBack: "\(server) lost commits: it is older than \(agent)'s journal"
            case .schema: "the schema at \(server) does not fit this version of Inlet: \(message)"
            case .sessionOver: "the session of \(agent) is over"
            case .fenced: "another agent has taken over this work"
            case .notMember: "\(agent) is draining or retired, or not a member of the place"
            }
        // A wrong value of this machine never reached the server.
        let isServers = code.rawValue.hasPrefix("IN") && (code != .argument || function != nil)
        return "fleet: \(words)" + (isServers ? " (\(code.rawValue))" : "")
    }

    private static func paused(_ places: [String]) -> String {
        guard !places.isEmpty else { return "" }
        let names = places.map { DisplayText.escape($0) }.joined(separator: ", ")
        return ", \(names) \(places.count == 1 ? "is" : "are") paused"
    }

    /// The fleet confirms after a restart; otherwise it recovers.
    private var isConfirming: Bool { code == .nothingGranted && message.hasSuffix("is confirming") }

    private func nothing(_ waitingFor: [String], _ since: String) -> String {
        if isConfirming { return "nothing is granted yet: PostgreSQL was restarted\(since)" }
        let names = waitingFor.map { DisplayText.escape($0) }.joined(separator: ", ")
        return "nothing is granted until \(names.isEmpty ? "all agents" : names) "
            + "\(waitingFor.count == 1 ? "has" : "have") reported (recovering\(since))"
    }

    /// The remedy, as an order to a person.
    package var advice: String {
        switch code {
        case .away: "check the server and the network; nothing is lost, and Inlet connects again automatically"
        case .untrusted:
            "in the URL, name the host as its certificate does and the authority with sslrootcert=FILE, "
                + "and keep sslmode=verify-full"
        case .refused:
            "correct the URL's user and password, the role's rights, or the server's pg_hba.conf"
        case .library: "install libpq 12 or newer (apt install libpq5, dnf install libpq)"
        case .journal: "see 'inlet check'; Inlet tries again automatically"
        case .unknownAgent:
            "run 'inlet fleet join' with a secret, or 'inlet fleet rejoin' where this agent had joined; "
                + "after a restore of the database that is expected"
        case .isAlive: "stop it, or give this agent its own name and state_dir"
        case .usedTwice:
            "for a copy, run 'inlet fleet rejoin --new-identity'; for a restored journal, run 'inlet fleet rejoin'"
        case .nothingGranted where isConfirming:
            "wait; it ends when all agents are back, or after the fleet's ttl"
        case .nothingGranted:
            "start the agents that have not reported, or run 'inlet fleet waive NAME' for one that is gone for good"
        case .reportFirst, .sessionOver: "wait; the agent does it automatically"
        case .wentBack: "keep all agents running until each has reported; 'inlet fleet status' names the missing ones"
        case .schema:
            "update the older one: this agent, or the schema with 'inlet fleet init' and an administrator's address"
        case .fenced: "nothing; the other agent completes it"
        case .notMember: "run 'inlet fleet undrain', or 'inlet fleet join' for a retired agent"
        case .argument: "correct the value that the message names"
        case .fault: "report it, with the log line"
        }
    }
}
