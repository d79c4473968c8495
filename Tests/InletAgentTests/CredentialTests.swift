import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import ServiceLifecycle
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Tokens that are given away, and credentials that are kept alive.
@Suite struct CredentialTests {
    private struct Setting {
        let log: EventLog
        let events: EventRecord
        let shared: Shared
        private let directory: TemporaryDirectory
        var board: DestinationRegistry { shared.destinations }

        init(_ destination: Destination, now: @escaping @Sendable () -> WallTime = { .now }) throws {
            directory = try TemporaryDirectory()
            log = try EventLog(nil)
            events = EventRecord(log)
            let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
            shared = .test(journal, log, [destination], clock: AgentClock(now: now))
        }

        /// Has the credentials kept alive, again at once, and runs `body` beside it.
        func keeping(_ body: () async throws -> Void) async throws {
            defer { shared.journal.close() }
            let scheduler = Scheduler([.keepAlive: KeepAlive(shared, interval: .milliseconds(5))])
            let group = ServiceGroup(quietly: [scheduler])
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await group.run() }
                try await body()
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
            }
        }
    }

    @Test func `credentials are kept alive again and again, whatever goes wrong, which is said once`() async throws {
        let calls = Count()
        var destination = Destination.scripted("here", ScriptedPipeline())
        destination.keepAlive = { () async throws(DeliveryError) in
            calls.add()
            throw DeliveryError.passing
        }
        let setting = try Setting(destination)
        try await setting.keeping { try await eventually("it is called") { calls.value >= 3 } }
        #expect(setting.events.names == ["destination.error"])
        #expect(setting.board.statuses().map(\.state) == [.up])
    }

    @Test func `a login that is not renewed for five days is warned of once a day, with what to do`() async throws {
        let start = WallTime(milliseconds: 1_900_000_000_000)
        let looks = Count()
        var destination = Destination.scripted("here", ScriptedPipeline())
        destination.keepAlive = { () async throws(DeliveryError) in throw DeliveryError.outage }
        destination.renewal = { LoginRenewal(at: start, lasts: .seconds(7 * 86_400), remedy: "log in again") }
        // Each look is eight hours after the one before.
        let setting = try Setting(destination) { start + .seconds(8 * 3600 * looks.add()) }
        try await setting.keeping { try await eventually("eight days pass") { looks.value >= 24 } }
        let warnings = setting.events.all.map(\.line).filter { $0.name == "destination.login_expiring" }
        // The 16th look is 5 days and 8 hours after the renewal, the 19th and the 22nd a day later each.
        #expect(warnings.count >= 3 && warnings.count <= 1 + (looks.value - 16) / 3)
        let reasons = warnings.flatMap(\.fields).compactMap { field -> String? in
            guard field.0 == "reason", case .text(let text) = field.1 else { return nil }
            return text
        }
        #expect(reasons.first?.contains("5 days ago") == true && reasons.first?.hasSuffix("or log in again") == true)
        #expect(reasons.dropFirst().first?.contains("6 days ago") == true)
    }

    @Test func `credentials that are refused pause the destination`() async throws {
        var destination = Destination.scripted("here", ScriptedPipeline())
        destination.keepAlive = { () async throws(DeliveryError) in throw DeliveryError.refused }
        let setting = try Setting(destination)
        try await setting.keeping {
            try await eventually("it is paused") { setting.board.refusesCredentials("here") }
        }
        #expect(setting.events.names == ["destination.down"])
    }

    @Test func `without such credentials there is nothing to do until the end`() async throws {
        let setting = try Setting(.scripted("here", ScriptedPipeline()))
        #expect(setting.board.perishable().isEmpty)
        try await setting.keeping {}
        #expect(setting.events.names.isEmpty)
    }

    @Test func `a token is given by the destination that has one, and its receiver is told of in the log`() async throws
    {
        var scene = try Scene()
        scene.destinations[0].accessToken = { _ async throws(DeliveryError) in Secret("token-1") }
        scene.destinations.append(.scripted("plain", ScriptedPipeline()))
        try await scene.run { stage in
            let token = try await stage.agent.control.accessToken("here", by: "uid 7")
            #expect(token.reveal() == "token-1")
            let line = try #require(stage.events.all.map(\.line).first { $0.name == "destination.token_given" })
            #expect(line.fields.contains { $0.0 == "to" && $0.1 == .text("uid 7") })
            for (name, reason) in [
                ("plain", "destination 'plain' has no tokens to give"), ("x", "no destination is called 'x'"),
            ] {
                let error = await #expect(throws: DeliveryError.self) {
                    try await stage.agent.control.accessToken(name, by: "uid 7")
                }
                #expect(error?.reason == reason)
            }
        }
    }
}
