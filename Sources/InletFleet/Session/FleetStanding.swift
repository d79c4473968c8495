package import InletCore

/// How this agent stands in its fleet, for status, page and metrics.
package struct FleetStanding: Sendable, Equatable {
    package var state: FleetSession.State
    /// When it became so.
    package var since: WallTime
    /// The last failure; nil while all goes well.
    package var error: FleetError?
    /// Host and port, without secrets.
    package var server: String
    package var agent: Int32?
    package var name: String?
    package var tag: String?
    /// nil past its own deadline.
    package var session: Int64?
    package var sessionLeft: Duration?
    package var ttl: Duration
    package var phase: FleetPhase
    /// Grows when commits were lost.
    package var epoch: Int32
    /// Whether the fleet waits for this agent's report, which begins after the mark `reportFrom`.
    package var owesReport: Bool
    package var reportFrom: Int64
    /// The highest mark that was heard.
    package var seen: Int64
    /// The agents that have not reported, as far as the last overview knew; escaped.
    package var waitingFor: [String]
    /// `active` or `draining`, as the fleet has it.
    package var agentState: String?
    /// Whether there are orders to ask for.
    package var hasCommands: Bool
    /// The last receipt that the server had at the last hello, or took since.
    package var receipts: Int64
    /// Without what only its users know, such as `receiptsBehind`.
    package var figures: FleetFigures

    /// The cause and the remedy in a sentence; nil while the session is live.
    package var message: String? {
        let error: FleetError? =
            switch state {
            case .live: nil
            case .alone: self.error ?? FleetError(.unknownAgent, "this agent has not joined the fleet")
            case .connecting, .refused: self.error
            case .confirming: FleetError(.nothingGranted, "the fleet is confirming")
            case .reporting:
                owesReport
                    ? FleetError(.reportFirst, "the fleet is recovering")
                    : FleetError(.nothingGranted, "the fleet is recovering")
            }
        guard let error else { return nil }
        let place = FleetError.Circumstances(
            server: server, agent: name ?? "this agent", since: since, waitingFor: waitingFor)
        return "\(error.sentence(place)); \(error.advice)"
    }

    /// A change of any of these is said (`onChange`).
    struct News: Equatable {
        var kind: Kind
        var code: FleetError.Code?
        var session: Int64?
        var phase: FleetPhase
        var epoch: Int32
        var owesReport: Bool
        var agentState: String?
        var hasCommands: Bool
    }

    /// `state` without its times.
    enum Kind: Equatable {
        case alone, connecting, confirming, live, reporting
        case refused(FleetError.Code)
    }

    var news: News {
        News(
            kind: kind, code: error?.code, session: session, phase: phase, epoch: epoch, owesReport: owesReport,
            agentState: agentState, hasCommands: hasCommands)
    }

    var kind: Kind {
        switch state {
        case .alone: .alone
        case .connecting: .connecting
        case .confirming: .confirming
        case .live: .live
        case .reporting: .reporting
        case .refused(let code): .refused(code)
        }
    }
}
