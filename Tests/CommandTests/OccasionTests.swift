import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

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
