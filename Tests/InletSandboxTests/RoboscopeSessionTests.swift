import Foundation
import InletCore
import InletSandbox
import Testing

@Suite struct RoboscopeSessionTests {
    @Test func `a change needs the version that it was made on`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let id = try await client.session()
            let path = "/work-sessions/\(id)"
            let first = try await client.get(path).value
            #expect(first["version"] == 1 && first["status"] == "draft" && first["started_at"] == .null)
            let active = try await client.send("PATCH", path, ["status": "active", "version": 1])
            #expect(active.status == 200 && active.value["version"] == 2)
            #expect(try await client.send("PATCH", path, ["status": "done", "version": 1]).status == 409)
            #expect(try await client.send("PATCH", path, ["status": "gone", "version": 2]).status == 422)
            #expect(try await client.send("PATCH", path, ["status": "done"]).value["version"] == 3)
            sandbox.rules.needsVersion = true
            #expect(try await client.send("PATCH", path, ["status": "archived"]).status == 400)
            #expect(sandbox.sessions().map(\.status) == ["done"] && sandbox.sessions().map(\.version) == [3])
        }
    }

    @Test func `somebody else can come first`() async throws {
        let faults = [RoboscopeOperation.updateSession, .updateMarker].map { RoboscopeFault(.conflict, at: $0) }
        try await withRoboscope { sandbox, client async throws in
            for fault in faults { sandbox.faults.add(fault) }
            let session = try await client.session()
            let marker = try await client.make("/markers", RoboscopeClient.marker(session))
            for path in ["/work-sessions/\(session)", "/markers/\(marker)"] {
                let change: SandboxJSON = ["meta": ["a": 1], "version": 1]
                #expect(try await client.send("PATCH", path, change).status == 409)
                #expect(try await client.get(path).value["version"] == 2)
                #expect(try await client.send("PATCH", path, change).status == 409)
                #expect(try await client.send("PATCH", path, change.with(["version": 2])).status == 200)
            }
        }
    }

    @Test func `the list is filtered by space, status and type`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let (hall, yard) = (sandbox.addSpace(key: "hall").id, sandbox.addSpace(key: "yard").id)
            for (space, type, status) in [
                (hall, "inspection", "active"), (hall, "repair", "done"), (yard, "other", "done"),
            ] {
                let body: SandboxJSON = [
                    "space_id": .string(space), "session_type": .string(type), "status": .string(status),
                    "started_at": "2026-01-02T03:04:05Z", "meta": ["ingest_batch": "b1"],
                ]
                _ = try await client.make("/work-sessions", body)
            }
            func count(_ query: String) async throws -> Int? {
                try await client.get("/work-sessions" + query).value.items?.count
            }
            #expect(try await count("") == 3)
            #expect(try await count("?space_id=\(hall.uppercased())") == 2)
            #expect(try await count("?space_id=\(hall)&status=done") == 1)
            #expect(try await count("?session_type=other") == 1)
            let kept = try #require(sandbox.sessions().first)
            #expect(kept.startedAt == "2026-01-02T03:04:05Z" && kept.meta?["ingest_batch"] == "b1")
        }
    }

    @Test func `who is there is told until its last sign of life is too old`() async throws {
        let clock = TestClock()
        try await withRoboscope(clock: clock) { sandbox, client async throws in
            let session = try await client.session()
            for user in ["ingest:nas", "Anna"] {
                let entered = try await client.send("POST", "/presence/\(session)", ["user_id": .string(user)])
                #expect(entered.status == 200)
            }
            #expect(try await client.get("/presence/\(session)").value == ["users": ["Anna", "ingest:nas"]])
            clock.pass(.seconds(20))
            _ = try await client.send("POST", "/presence/\(session)", ["user_id": "ingest:nas"])
            clock.pass(.seconds(10))
            #expect(sandbox.present(in: session) == ["ingest:nas"])
            #expect(try await client.send("DELETE", "/presence/\(session)/ingest:nas").status == 204)
            #expect(sandbox.present(in: session).isEmpty && sandbox.visitors(of: session) == ["Anna", "ingest:nas"])
        }
    }

    @Test func `a lock holds for its time, for whoever has its token`() async throws {
        let clock = TestClock()
        try await withRoboscope(clock: clock) { sandbox, client async throws in
            let session = try await client.session()
            let path = "/locks/work-sessions/\(session)"
            let lock = try await client.send("POST", path, ["ttl_seconds": 30]).value
            let token = try #require(lock["token"])
            #expect(lock["acquired"] == true)
            #expect(try await client.send("POST", path, ["ttl_seconds": 30]).value["acquired"] == false)
            clock.pass(.seconds(29))
            let extended = try await client.send("POST", path + "/extend", ["token": token, "ttl_seconds": 30])
            #expect(extended.value == ["extended": true])
            clock.pass(.seconds(29))
            #expect(try await client.get(path + "/status").value == ["locked": true])
            #expect(try await client.send("POST", path + "/unlock", ["token": "x"]).value == ["released": false])
            #expect(try await client.send("POST", path + "/unlock", ["token": token]).value == ["released": true])
            #expect(!sandbox.isLocked(session: session))
            sandbox.lock(session: session, for: .seconds(5))
            #expect(try await client.send("POST", path, [:]).value["acquired"] == false)
            clock.pass(.seconds(5))
            #expect(try await client.send("POST", path, [:]).value["acquired"] == true)
        }
    }

    @Test func `presence, locks and events may not exist`() async throws {
        let rules = RoboscopeRules(hasPresence: false, hasLocks: false, hasEvents: false)
        try await withRoboscope(rules: rules) { sandbox, client async throws in
            let session = try await client.session()
            for path in ["/presence/\(session)", "/locks/work-sessions/\(session)/status", "/events"] {
                #expect(try await client.get(path).status == 404)
            }
            #expect(try await client.send("POST", "/presence/\(session)", ["user_id": "a"]).status == 404)
            #expect(try await client.send("POST", "/locks/work-sessions/\(session)", [:]).status == 404)
            #expect(sandbox.visitors(of: session).isEmpty)
        }
    }
}
