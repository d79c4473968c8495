import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
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
            try await whileRunning([Scheduler([.keepAlive: KeepAlive(shared, interval: .milliseconds(5))])], body)
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
        destination.expiry = { now in
            Destination.loginWarning(
                renewedAt: start, lasts: .seconds(7 * 86_400), remedy: "log in again", now: now)
        }
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
            try await eventually("it is paused") { setting.board.state(of: "here")?.refusesCredentials == true }
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
            #expect(stage.events.field("to", of: "destination.token_given") == .text("uid 7"))
            for (name, reason) in [
                ("plain", "destination 'plain' has no tokens to give"), ("x", "no destination is named 'x'"),
            ] {
                let error = await #expect(throws: DeliveryError.self) {
                    try await stage.agent.control.accessToken(name, by: "uid 7")
                }
                #expect(error?.reason == reason)
            }
        }
    }
}

/// Files that one destination stores (`here`) and another one registers (`spaces`).
@Suite(.serialized) struct RegistrationTests {
    private static func scene(
        _ spaces: ScriptedPipeline, in directory: TemporaryDirectory? = nil
    ) throws -> Scene {
        var scene = try Scene(in: directory)
        var destination = Destination.scripted("spaces", spaces)
        destination.takesSidecars = false
        destination.storage = ("here", { path, _ in path.extension == "glb" })
        scene.destinations.append(destination)
        scene.route.to = ["spaces"]
        scene.route.onSuccess = .delete
        return scene
    }

    @Test func `a file is stored, then registered, and only then disposed of`() async throws {
        let (spaces, gate) = (ScriptedPipeline(), Gate())
        let scene = try Self.scene(spaces)
        spaces.always(.hold(gate, .deliver))
        try await scene.run { stage in
            let file = try scene.drop("x/ship.glb", "a model")
            try await eventually("it is being registered") { spaces.record.orders.count == 1 }
            let order = spaces.record.orders[0]
            #expect(order.key == "ship.glb" && order.path == "x/ship.glb" && order.root == stage.root)
            #expect(order.upstream.map(\.destination) == ["here"] && order.upstream.map(\.path) == ["x/ship.glb"])
            #expect(order.upstream[0].proof.key == "ship.glb" && order.batch == nil)
            #expect(scene.here.record.stored.keys.sorted() == ["ship.glb"])
            #expect(isThere(file))
            gate.open()
            let job = try await stage.finished("x/ship.glb")
            #expect(job.deliveries.map(\.destination) == ["here", "spaces"])
            #expect(scene.here.record.orders.allSatisfy { $0.upstream.isEmpty })
            #expect(!isThere(file))
        }
    }

    @Test func `a file that needs no storage goes straight to the registration`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        try await scene.run { stage in
            let job = try await stage.process("x/markers.json", "[]")
            #expect(job.deliveries.map(\.destination) == ["spaces"])
            #expect(scene.here.record.orders.isEmpty && spaces.record.orders[0].upstream.isEmpty)
        }
    }

    @Test(arguments: [("model", ["here", "spaces"]), ("list", ["spaces"])])
    func `its own fields have a say in whether it is stored`(role: String, places: [String]) async throws {
        var scene = try Self.scene(ScriptedPipeline())
        scene.destinations[1].storage = ("here", { $1["role"] == "model" })
        scene.route.with = ["role": try KeyTemplate(role)]
        let held = scene
        try await held.run { stage in
            try held.drop("data.json")
            #expect(try await stage.finished("data.json").deliveries.map(\.destination) == places)
        }
    }

    @Test func `its companions are stored first, and the registration is told of them`() async throws {
        let spaces = ScriptedPipeline()
        var scene = try Self.scene(spaces)
        scene.route.match.extensions = ["glb"]
        scene.route.sidecars = SidecarRule(extensions: ["jpg"], wait: .seconds(3600))
        let held = scene
        try await held.run { stage in
            try held.drop("ship.jpg", "a picture")
            try held.drop("ship.glb", "a model")
            try await stage.finished("ship.glb")
            try await stage.finished("ship.jpg")
            #expect(spaces.record.orders.count == 1)
            #expect(spaces.record.orders[0].upstream.map(\.path) == ["ship.glb", "ship.jpg"])
            #expect(spaces.record.orders[0].upstream.map(\.mediaType).last == "image/jpeg")
        }
    }

    @Test func `a registration that fails leaves file and object, and says so`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        spaces.script("ship.glb", .fail(.hopeless))
        try await scene.run { stage in
            let file = try scene.drop("ship.glb")
            let job = try await stage.finished("ship.glb", .failed)
            #expect(
                job.file.reason
                    == "\(DeliveryError.hopeless.reason); the file stays stored in 'here' as ship.glb")
            #expect(isThere(file) && scene.here.record.stored.count == 1)
            try await stage.retry(job)
            #expect(scene.here.attempts(at: "ship.glb") == 1 && spaces.attempts(at: "ship.glb") == 2)
        }
    }

    @Test func `what cannot be stored is not registered`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        scene.here.script("ship.glb", .fail(.hopeless))
        try await scene.run { stage in
            let job = try await stage.process("ship.glb", as: .failed)
            #expect(job.deliveries[1].reason == "not stored in 'here': \(DeliveryError.hopeless.reason)")
            #expect(spaces.record.orders.isEmpty)
        }
    }

    @Test func `a file that a person names is seen in its folder`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        let outside = try scene.directory.write([1], to: "elsewhere/ship.glb")
        try await scene.run { stage in
            let id = try #require(await stage.agent.control.send(outside, to: "spaces").job)
            try await eventually("it is delivered") { try await stage.journal.job(id)?.file.state == .delivered }
            #expect(spaces.record.orders[0].path == "ship.glb")
            #expect(spaces.record.orders[0].root == outside.removingLastComponent())
            #expect(spaces.record.orders[0].upstream.map(\.path) == ["ship.glb"])
            #expect(await stage.agent.control.send(outside, to: "spaces").knownJob == id)
        }
    }

    @Test func `a process that dies after the file is stored does not store it again`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.string
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            var scene = try Self.scene(ScriptedPipeline(), in: TemporaryDirectory(existing: FilePath(path)))
            scene.onEvent = { if $0.line.name == "job.delivered" { kill(getpid(), SIGKILL) } }
            try scene.drop("ship.glb")
            try await scene.run { _ in try await Task.sleep(for: .seconds(60)) }
        }
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces, in: directory)
        try await scene.run { stage in
            try await stage.finished("ship.glb")
            #expect(scene.here.record.orders.isEmpty && spaces.record.orders.count == 1)
            #expect(spaces.record.orders[0].upstream.map(\.proof.key) == ["ship.glb"])
        }
    }
}
