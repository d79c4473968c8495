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
    private func place(_ notify: String) throws -> Place {
        return try Place(top: ["notify:\n  - { name: ops, \(notify) }"])
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
        let next = try await place.run()
        try await next.line("notification.sent")
        #expect(try await next.stop() == .code(0))
        #expect(receiver.notices.count == 1)
        let ids = Set((receiver.turnedAway + receiver.notices).compactMap { $0.headers["webhook-id"] })
        #expect(ids.count == 1, "\(ids)")
        #expect(try await place.inlet("status", "--json").object()["notices_waiting"] == nil)
    }

    @Test(arguments: CrashPoints.endNotice.list)
    func `a crash around the end of a file tells it once, or again with the same number`(_ point: String) async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try Place(
            route: ["on_success: archive"],
            top: ["notify:\n  - { name: ops, webhook: \"http://127.0.0.1:\(server.port)/\", on: [delivered] }"])
        try place.put("clip.mov", bytes(1000))
        let agent = try place.start("run", environment: ["INLET_FAILPOINT": point])
        #expect(try await agent.ending() == .signal(SIGKILL))
        let next = try await place.run()
        try await next.line("notification.sent")
        #expect(try await next.stop() == .code(0))
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
        let next = try await place.run()
        try await next.line("notification.sent")
        #expect(try await next.stop() == .code(0))
        let told = try receiver.notices.map { try object($0)["event"] as? String }
        #expect(!told.isEmpty && told.allSatisfy { $0 == "destination_down" }, "\(told)")
        #expect(Set(receiver.notices.compactMap { $0.headers["webhook-id"] }).count == told.count)
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
        try await place.inlet("check", code: 78, says: "/nowhere/hook is not there")
    }
}
