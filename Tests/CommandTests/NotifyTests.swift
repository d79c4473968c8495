import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// Who is told what happens, by the built agent.
@Suite(.serialized) struct NotifyTests {
    /// A place whose agent tells one receiver, called ops.
    private func place(_ notify: String, route: [String] = []) throws -> Place {
        return try Place(route: route, top: ["notify:\n  - { name: ops, \(notify) }"])
    }

    /// What a notice says.
    private func object(_ request: ReceivedRequest) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any] ?? [:]
    }

    @Test func `a delivered file is told once, with its receipt`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place(
            "webhook: \"http://127.0.0.1:\(server.port)/canary\", secret: text-canary, on: [delivered]")
        let agent = try await place.run()
        try place.put("clip.mov", bytes(1000))
        try await agent.line("notification.sent")
        #expect(try await agent.stop() == .code(0))
        let notice = try #require(receiver.notices.first)
        #expect(receiver.notices.count == 1 && notice.headers["x-hub-signature-256"] != nil)
        let told = try object(notice)
        #expect(told["event"] as? String == "delivered" && told["id"] as? String == notice.headers["webhook-id"])
        let file = try #require(told["file"] as? [String: Any])
        let receipt = try #require(try await place.inlet("receipts").objects().first)
        #expect(NSDictionary(dictionary: file) == NSDictionary(dictionary: receipt))
        #expect(file["path"] as? String == place.drop.appending("clip.mov").string)
        #expect(!agent.errors.contains("canary"))
    }

    @Test func `a notice that was not taken outlives a kill, and comes with the same number`() async throws {
        let receiver = NoticeReceiver()
        receiver.open(false)
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place("webhook: \"http://127.0.0.1:\(server.port)/\", on: [delivered]")
        let agent = try await place.run()
        try place.put("clip.mov", bytes(1000))
        try await agent.line("notification.failed")
        try await agent.kill()
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] as? Int == 1)
        receiver.open(true)
        try await place.runUntil("notification.sent")
        #expect(receiver.notices.count == 1)
        let ids = Set((receiver.turnedAway + receiver.notices).compactMap { $0.headers["webhook-id"] })
        #expect(ids.count == 1, "\(ids)")
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] == nil)
    }

    @Test(arguments: CrashPoints.endNotice.list)
    func `a crash around the end of a file tells it once, or again with the same number`(_ point: String) async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place(
            "webhook: \"http://127.0.0.1:\(server.port)/\", on: [delivered]", route: ["on_success: archive"])
        try place.put("clip.mov", bytes(1000))
        try await place.die(at: point)
        try await place.runUntil("notification.sent")
        #expect(Set(receiver.notices.compactMap { $0.headers["webhook-id"] }).count == 1)
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] == nil)
    }

    @Test(arguments: CrashPoints.takenNotice.list)
    func `a notice that was taken comes again, with its number, only if the journal did not know`(_ point: String)
        async throws
    {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place("webhook: \"http://127.0.0.1:\(server.port)/\", on: [delivered]")
        try place.put("a.mov", bytes(1000))
        try await place.die(at: point)
        #expect(receiver.notices.count == 1)
        let isTold = point == "noticeRemoved"
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] as? Int == (isTold ? nil : 1))
        let next = try await place.run()
        try place.put("b.mov", bytes(1001))
        try await next.line("notification.sent", number: isTold ? 1 : 2)
        #expect(try await next.stop() == .code(0))
        let ids = receiver.notices.compactMap { $0.headers["webhook-id"] }
        #expect(ids.count == (isTold ? 2 : 3) && Set(ids).count == 2, "\(ids)")
        if !isTold { #expect(ids.first == ids.dropFirst().first) }
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] == nil)
    }

    @Test(arguments: CrashPoints.destinationNotice.list)
    func `that a destination is down is told although the process died over it`(_ point: String) async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        var config = ConfigText.spiral(try FreePort.any())
        config.top.append(
            "notify:\n  - { name: ops, webhook: \"http://127.0.0.1:\(server.port)/\", on: [destination_down] }")
        let place = try Place(config)
        let agent = try await place.run(environment: ["INLET_FAILPOINT": point])
        try place.put("clip.mov", bytes(1000))
        #expect(try await agent.ending() == .signal(SIGKILL))
        let waiting = try await place.inlet("status", "--json").object()["notices_waiting"] as? Int
        #expect(waiting == (point == "posted" ? 1 : nil))
        // One that was not posted is told of anew: the destination is down still.
        try await place.runUntil("notification.sent")
        let told = try receiver.notices.map { try object($0)["event"] as? String }
        #expect(!told.isEmpty && told.allSatisfy { $0 == "destination_down" }, "\(told)")
        #expect(Set(receiver.notices.compactMap { $0.headers["webhook-id"] }).count == told.count)
    }

    @Test func `restarts do not repeat that a destination is down, and tell once that it is up`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let port = try FreePort.any()
        var config = ConfigText.spiral(port)
        config.top.append(
            "notify:\n  - { name: ops, webhook: \"http://127.0.0.1:\(server.port)/\", "
                + "on: [destination_down, destination_up] }")
        let place = try Place(config)
        try place.put("clip.mov", bytes(1000))
        try await place.runUntil("notification.sent")
        // Had it been told again, the notification would be in the outbox before the next one.
        try await place.runUntil("destination.down")
        try await withSandbox(place.folder.path.appending("store"), port: port) { _, _ in
            try await place.runUntil("notification.sent")
        }
        let told = try receiver.notices.map { try object($0)["event"] as? String }
        #expect(told == ["destination_down", "destination_up"])
    }

    @Test func `a receiver is tried by hand, and check says what it can without telling anybody`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place("webhook: \"http://127.0.0.1:\(server.port)/canary\"")
        let check = try await place.inlet("check", says: "notify ops: 127.0.0.1:\(server.port)")
        #expect(receiver.notices.isEmpty)
        #expect(!(check.output + check.errors).contains("canary"))
        try await place.inlet("notify", "test", "ops", code: 0)
        #expect(receiver.notices.count == 1)
        #expect(try object(#require(receiver.notices.first))["event"] as? String == "test")
        receiver.open(false)
        try await place.inlet("notify", "test", "ops", code: 69, errors: "answered 503")
        try await place.inlet("notify", "test", "opps", code: 64)
        try place.configure(
            replacing: "webhook: \"http://127.0.0.1:\(server.port)/canary\"", with: "exec: [/nowhere/hook]")
        try await place.inlet("check", code: 78, says: "/nowhere/hook does not exist")
    }
}

/// Phones and mail, by the built program.
@Suite(.serialized) struct PhoneTests {
    @Test func `a phone is tried by hand, and gets what failed with high priority`() async throws {
        let phone = NoticeReceiver()
        let server = try ScriptedServer { try phone.serve($0) }
        let place = try Place(
            route: ["validate: { extensions: [mov] }"],
            top: ["notify:\n  - { ntfy: \"http://127.0.0.1:\(server.port)/canary-topic\", token: canary-token }"])
        let check = try await place.inlet("check", says: "notify ntfy: ntfy at 127.0.0.1:\(server.port)")
        #expect(phone.notices.isEmpty)
        let test = try await place.inlet("notify", "test", "ntfy", code: 0)
        #expect(phone.notices.count == 1)
        #expect(try JSONValue(parsing: phone.notices[0].body)["topic"] == .string("canary-topic"))
        phone.open(false)
        let refused = try await place.inlet("notify", "test", "ntfy", code: 69, errors: "answered 503")
        phone.open(true)
        let agent = try await place.run()
        try place.put("setup.exe", bytes(10))
        try await agent.line("notification.sent")
        #expect(try await agent.stop() == .code(0))
        let message = try JSONValue(parsing: #require(phone.notices.last).body)
        #expect(message["title"] == .string("Rejected: setup.exe") && message["priority"]?.integer == 4, "\(message)")
        let said = [check, test, refused].map { $0.output + $0.errors }.joined() + agent.output + agent.errors
        #expect(!said.contains("canary"), "\(said)")
    }

    @Test func `a mail server is tried by hand`() async throws {
        let lines = Mutex<[String]>([])
        let server = try ScriptedServer { connection in
            try connection.write("220 ready\r\n")
            var isText = false
            while true {
                let line = try connection.readLine()
                lines.withLock { $0.append(line) }
                if isText, line != "." { continue }
                isText = line == "DATA"
                try connection.write(isText ? "354 go\r\n" : "250 ok\r\n")
            }
        }
        let place = try Place(
            top: ["notify:\n  - { smtp: \"smtp://127.0.0.1:\(server.port)\", to: [a@example.com, b@example.com] }"])
        try await place.inlet("check", says: "notify smtp: smtp at 127.0.0.1:\(server.port)")
        try await place.inlet("notify", "test", "smtp", code: 0)
        let said = lines.withLock(\.self)
        for line in ["RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>", "From: Inlet <a@example.com>"] {
            #expect(said.contains(line), "\(line): \(said)")
        }
        #expect(said.contains { $0.hasPrefix("Subject: Test from Inlet on ") }, "\(said)")
    }
}

/// Batches and all other occasions, as they are told by the built agent.
@Suite(.serialized) struct OccasionTests {
    /// Writes down, line after line, what it was called for, and then the notice.
    private static let program = #"""
        printf '%s|%s|%s|%s\n' "$INLET_EVENT" "$INLET_STATE" "$INLET_DESTINATION" "$INLET_PATH" >> "$1"
        cat >> "$1"
        echo >> "$1"
        """#

    @Test func `every occasion is told to a webhook and to a program, in the same words`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let port = try FreePort.any()
        let place = try Place()
        let book = place.folder.path.appending("book")
        let program = try place.folder.write(Self.program.utf8, to: "hook.sh")
        let on = "on: [delivered, failed, rejected, batch_done, destination_down, destination_up]"
        var config = ConfigText.spiral(
            port, route: "unit: folder", "completion: marker", "validate: { max_size: 9MiB }")
        config.top += [
            "notify:", "  - { name: web, webhook: \"http://127.0.0.1:\(server.port)/\", \(on) }",
            "  - { name: hook, exec: [/bin/sh, \"\(program.string)\", \"\(book.string)\"], timeout: 60s, \(on) }",
        ]
        try place.configure(config)
        let agent = try await place.run()
        try place.put("good.bin", bytes(1000))
        try await agent.line("destination.down")
        try await withSandbox(place.folder.path.appending("store"), port: port) { sandbox, _ in
            try await Self.giveOccasions(place, sandbox, agent)
            #expect(try await agent.stop() == .code(0))
        }
        let lines = String(decoding: try place.content(book), as: UTF8.self).split(separator: "\n").map(String.init)
        let called = stride(from: 0, to: lines.count, by: 2).map { lines[$0] }
        #expect(called.sorted() == Self.occasions(place.drop.string).sorted())
        let read = stride(from: 1, to: lines.count, by: 2).map { Self.words(lines[$0]) }
        #expect(read == receiver.notices.map { Self.words(String(decoding: $0.body, as: UTF8.self)) })
        for (call, words) in zip(called, read) {
            let event = call.prefix { $0 != "|" }
            #expect(words.hasPrefix(",\"event\":\"\(event)\","), "\(call): \(words)")
        }
    }

    /// A notice without its number, which is each receiver's own.
    private static func words(_ notice: String) -> Substring { notice.drop { $0 != "," } }

    /// The server comes up for a file that waits; then a file fails, one is rejected, and a unit is delivered.
    private static func giveOccasions(
        _ place: Place, _ sandbox: SpiralSandbox, _ agent: InletProcess
    ) async throws {
        try await agent.line("destination.up")
        try await agent.line("job.finished") { $0.isAbout("good.bin") && $0["state"] == "delivered" }
        sandbox.faults.add(Fault(.reply(.tooLarge), at: .create, times: nil))
        try place.put("bad.bin", bytes(6 << 20))
        try place.put("huge.bin", bytes(10 << 20))
        try await agent.line("job.finished") { $0.isAbout("bad.bin") && $0["state"] == "failed" }
        try await agent.line("job.finished") { $0.isAbout("huge.bin") && $0["state"] == "rejected" }
        sandbox.faults.clear()
        try place.put("A001/a.bin", bytes(2000))
        try place.put("A001/DONE", Data())
        try await agent.line("batch.ended") { $0["outcome"] == "complete" }
        try await agent.line("notification.sent", number: 2 * occasions("").count)
    }

    private static func occasions(_ drop: String) -> [String] {
        [
            "destination_down|down|store|", "destination_up|up|store|",
            "delivered|delivered|store|\(drop)/good.bin", "failed|failed|store|\(drop)/bad.bin",
            "rejected|rejected||\(drop)/huge.bin", "delivered|delivered|store|\(drop)/A001/a.bin",
            "batch_done|complete||\(drop)/A001",
        ]
    }
}
