import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

/// What runs beside the deliveries, by another configuration.
@Suite struct ReloadServiceTests {
    /// Takes whatever it is told.
    private final class Ear: Sendable {
        private let requests = Mutex<[ReceivedRequest]>([])

        func listen(_ connection: ServerConnection) throws {
            while true {
                let request = try connection.readRequest()
                requests.withLock { $0.append(request) }
                try connection.answer("204 No Content")
            }
        }

        func heard(_ path: String) -> [String] {
            requests.withLock { $0.filter { $0.line.contains(path) }.map { String(decoding: $0.body, as: UTF8.self) } }
        }
    }

    @Test func `another ping address is asked from then on, and the former no more`() async throws {
        let ear = Ear()
        let server = try ScriptedServer { try ear.listen($0) }
        let address = "ping_url: \"http://127.0.0.1:\(server.port)"
        let site = try ReloadSite(ReloadSite.text(top: "\(address)/old\""))
        try await site.scene().run { stage in
            try await eventually("the first is asked") { ear.heard(" /old").count >= 3 }
            site.write(ReloadSite.text(top: "\(address)/new\""))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).changes == ["ping_url"])
            try await eventually("the other is asked") { !ear.heard(" /new/start").isEmpty }
            let before = ear.heard(" /old").count
            try await eventually("it goes on") { ear.heard(" /new").count >= 20 }
            // One that was on its way may be read later.
            #expect(ear.heard(" /old").count <= before + 1)
            site.write(ReloadSite.text())
            #expect(try ReloadSite.done(await stage.agent.control.reload()).changes == ["ping_url"])
        }
    }

    @Test func `notices go to the receiver of the new file`() async throws {
        let ear = Ear()
        let server = try ScriptedServer { try ear.listen($0) }
        func text(_ path: String) -> String {
            ReloadSite.text(
                top: "notify: [{ name: ops, webhook: \"http://127.0.0.1:\(server.port)\(path)\", on: [delivered] }]")
        }
        let site = try ReloadSite(text("/old"))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try await eventually("the first is told") {
                let backlog = try await stage.journal.outboxBacklog()
                return !ear.heard(" /old").isEmpty && backlog == OutboxBacklog()
            }
            site.write(text("/new"))
            #expect(try !ReloadSite.done(await stage.agent.control.reload()).changes.isEmpty)
            try scene.drop("b")
            try await stage.finished("b")
            try await eventually("the other is told") {
                let backlog = try await stage.journal.outboxBacklog()
                return !ear.heard(" /new").isEmpty && backlog == OutboxBacklog()
            }
        }
        #expect(ear.heard(" /old").count == 1 && ear.heard(" /new").count == 1)
        #expect(
            ear.heard(" /new").allSatisfy { $0.replacing("\\", with: "").contains("drop/b\"") }, "\(ear.heard(" /new"))"
        )
    }

    @Test func `backups and the history begin with the file that asks for them`() async throws {
        let site = try ReloadSite(ReloadSite.text(top: "journal_history: { after: off }"))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            site.write(ReloadSite.text(top: "journal_history: { after: off }\njournal_backup: { every: 1m }"))
            #expect(try !ReloadSite.done(await stage.agent.control.reload()).changes.isEmpty)
            try await eventually("it is backed up") { stage.events.count("journal.backup") > 0 }
            #expect(stage.events.count("journal.pruned") == 0)
            site.write(ReloadSite.text(top: "journal_history: { after: 1s }"))
            #expect(try !ReloadSite.done(await stage.agent.control.reload()).changes.isEmpty)
            try await eventually("it is history") { stage.events.count("journal.pruned") > 0 }
        }
    }

    @Test func `what runs while its destination leaves and comes back is neither parked nor begun twice`() async throws
    {
        let site = try ReloadSite(ReloadSite.text(to: "[there]"))
        let there = site.there
        let gate = Gate()
        there.script("good", .hold(gate, .deliver))
        there.script("bad", .hold(gate, .fail(.serverFault)))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("good")
            try scene.drop("bad")
            try await eventually("both run") { there.record.running == 2 }
            site.write(ReloadSite.text(destinations: ["here"]))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).parked == 0)
            site.write(ReloadSite.text(to: "[there]"))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).parked == 0)
            try scene.drop("next")
            try await stage.finished("next")
            #expect(there.record.running == 2)
            gate.open()
            try await stage.finished("good")
            try await stage.finished("bad")
            #expect(there.attempts(at: "good") == 1 && there.attempts(at: "bad") == 2)
        }
    }
}
