import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

/// The service that the package brings, where systemd runs it.
struct InitService: Sendable {
    static let unit = "inlet.service"

    /// How long the agent may take until it can be asked, and the pause between tries.
    private static let absence = (longest: Duration.seconds(30), pause: Duration.milliseconds(100))
    /// How long it may list its folders before it is asked what it needs: one that it may not read shows at once.
    private static let listing = Duration.seconds(5)

    private let program: FilePath
    private let pool = BlockingPool(name: "service", threads: 1)

    /// The service of this machine; nil without systemd, without the unit, and for a user who may not start it.
    static func find() async -> InitService? {
        guard ProcessSetup.userID == 0, let program = ProgramFinder.find("systemctl") else { return nil }
        let service = InitService(program: program)
        return await service.succeeds("cat", unit) ? service : nil
    }

    private init(program: FilePath) { self.program = program }

    /// Starts it now, and from now on with the machine. A running one starts again, with the new configuration.
    func start() async throws(Refusal) {
        let wasActive = await succeeds("is-active", "--quiet", Self.unit)
        try await run("enable", "--now", Self.unit)
        if wasActive { try await run("restart", Self.unit) }
    }

    /// Waits until the agent that listens at `socket` can be asked, and has looked at its folders.
    /// - Returns: the link to its page, nil without a page; and what needs a person: the agent has rights of its own.
    func answer(at socket: FilePath) async throws -> (link: String?, needs: [String]) {
        let start = ContinuousClock.now
        let (end, listed) = (start.advanced(by: Self.absence.longest), start.advanced(by: Self.listing))
        while true {
            if let agent = try await ControlAccess.runningAgent(at: socket) {
                defer { agent.shutdown() }
                let status = try await agent.ask(Endpoints.status)
                if ContinuousClock.now > listed || !status.roots.contains(where: { $0.state.hasPrefix("starting") }) {
                    return (try await agent.ask(Endpoints.loginLink).url, status.health?.needs ?? [])
                }
            } else if ContinuousClock.now >= end {
                throw Refusal(
                    "the service was started, and does not answer at \(socket.display); "
                        + "see why with: journalctl -u inlet")
            }
            try await Task.sleep(for: Self.absence.pause)
        }
    }

    private func succeeds(_ arguments: String...) async -> Bool {
        do throws(SystemError) {
            return try await outcome(arguments).end == .exited(0)
        } catch {
            // A systemctl that cannot be run starts nothing either.
            return false
        }
    }

    private func run(_ arguments: String...) async throws(Refusal) {
        let command = (["systemctl"] + arguments).joined(separator: " ")
        let outcome: ChildProcess.Outcome
        do throws(SystemError) {
            outcome = try await self.outcome(arguments)
        } catch {
            throw Refusal("\(command): \(error)")
        }
        guard outcome.end != .exited(0) else { return }
        let said = String(decoding: outcome.errors, as: UTF8.self).split(separator: "\n").joined(separator: " ")
        throw Refusal("\(command) failed: \(DisplayText.escape(said)); see: systemctl status inlet")
    }

    private func outcome(_ arguments: [String]) async throws(SystemError) -> ChildProcess.Outcome {
        let environment = [(name: "PATH", value: Array(ProgramFinder.path.utf8))]
        let child = ChildProcess(
            [program.string] + arguments, environment: environment, timeout: .seconds(120))
        return try await child.run(on: pool)
    }
}
