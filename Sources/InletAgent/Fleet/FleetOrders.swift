internal import InletCore
internal import InletFleet
internal import InletJournal
internal import SystemPackage

/// Carries out orders that came through the fleet, with the agent's own orders. An order's number is in the journal
/// after it had its effect: none is lost, and one that a crash interrupts is repeated, which does no harm. One whose
/// answer was lost is not carried out again.
struct FleetOrders: Sendable {
    let member: FleetMember
    let control: AgentControl

    /// Of this process's orders, newest last, so that one whose answer was lost gets the same answer.
    private var answers: [(id: String, result: Result<String, Refusal>)] = []
    private static let mostAnswers = 1000

    init(_ member: FleetMember, _ control: AgentControl) { (self.member, self.control) = (member, control) }

    mutating func carryOut() async throws(FleetError) {
        for command in try await member.link.commands() {
            let result: Result<String, Refusal>
            do throws(JournalError) {
                result = try await answer(to: command)
            } catch {
                // A journal that answers nothing now is asked at the next beat.
                return
            }
            try await end(command, result)
        }
    }

    private mutating func answer(to command: FleetCommand) async throws(JournalError) -> Result<String, Refusal> {
        if let known = answers.last(where: { $0.id == command.id }) {
            // Its effect may not be in the journal yet.
            try await member.journal.keepFleetCommand(command.id)
            return known.result
        }
        if try await member.journal.knowsFleetCommand(command.id) {
            return .success("carried out before; its answer was lost")
        }
        member.log.emit(.fleetCommand(verb: FleetMembers.cut(command.verb), by: command.askedBy))
        let result = await result(of: command)
        if answers.count >= Self.mostAnswers { answers.removeFirst() }
        answers.append((command.id, result))
        try await member.journal.keepFleetCommand(command.id)
        return result
    }

    private func end(_ command: FleetCommand, _ result: Result<String, Refusal>) async throws(FleetError) {
        let (isDone, words) =
            switch result {
            case .success(let words): (true, words)
            case .failure(let refusal): (false, refusal.description)
            }
        let body = JSONValue.members(["text": .string(FleetMembers.cut(words))]).bytes
        try await member.link.commandEnded(command.id, done: isDone, result: body)
    }

    private func result(of command: FleetCommand) async -> Result<String, Refusal> {
        do {
            return .success(try await perform(command))
        } catch let refusal as Refusal {
            return .failure(refusal)
        } catch {
            return .failure(Refusal("\(error)"))
        }
    }

    private func perform(_ command: FleetCommand) async throws -> String {
        let args = JSONValue.object(command.args)
        let by = "the fleet (\(command.askedBy))"
        let destination = args["destination"]?.string
        switch command.verb {
        case "retry": return try await act(.retry, args)
        case "cancel":
            guard args["job"] != nil else { throw Refusal("cancel needs a job") }
            return try await act(.cancel, args)
        case "pause", "resume":
            let names = try await control.setPaused(command.verb == "pause", destination, by: by)
            guard !names.isEmpty else { throw Refusal("no destination is named so here") }
            return names.joined(separator: ", ")
        case "rescan":
            guard let live = control.live else { throw Refusal("no agent is running") }
            let root = args["root"]?.string.map { FilePath($0) }
            if let root, !live.watched.contains(root) { throw Refusal("that folder is not watched here") }
            live.shared.roots.list(root)
            return "listing again"
        case "limit": return try limit(args, destination)
        default: throw Refusal("this version of Inlet does not know the order \(FleetMembers.cut(command.verb))")
        }
    }

    /// Of one job, or of all files of a destination that failed.
    private func act(_ action: JobAction, _ args: JSONValue) async throws -> String {
        var filter = FileFilter(limit: Self.mostFiles)
        if let job = args["job"]?.integer {
            filter.ids = [job]
        } else {
            filter.states = [.failed, .expired]
            filter.destination = args["destination"]?.string
        }
        let outcome = try await control.act(action, on: filter)
        if outcome.done == 0, let reason = outcome.skipped.keys.sorted().first { throw Refusal("the file \(reason)") }
        return "\(outcome.done) of \(outcome.matched) files"
    }

    private static let mostFiles = 100_000

    private func limit(_ args: JSONValue, _ destination: String?) throws -> String {
        let order: BandwidthPolicy.Order =
            switch args["bytes_per_second"] {
            case nil: .auto
            case .number(let digits)?:
                if let rate = Int64(digits), rate >= 0 { .rate(rate) } else { throw Refusal("that is no rate") }
            default: throw Refusal("bytes_per_second is a number")
            }
        guard let status = control.limit(order, for: destination) else {
            throw Refusal("no destination is named so here")
        }
        return RateText.format(status.rate)
    }
}
