import Foundation
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// A file that failed lies in quarantine; to send it again it must be where it is sent from.
@Suite struct QuarantineReturnTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.script("a", .fail(.hopeless))
        return scene
    }

    private func lying(_ stage: Stage) -> FilePath { stage.root.pushing(".inlet/failed/sub/a") }

    @Test func `a retry brings a file back from quarantine, and sends it under its own name`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            let file = try scene.drop("sub/a", "mine")
            let job = try await stage.finished("sub/a", .failed)
            #expect(isThere(lying(stage)) && !isThere(file))
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            let sent = try await stage.finished("sub/a")
            #expect(sent.file.id == job.file.id && sent.file.disposition == Disposition.kept)
            #expect(try text(file) == "mine")
            #expect(try names(in: lying(stage).removingLastComponent()) == [])
            #expect(scene.here.record.stored == ["a": Array("mine".utf8)])
            try await eventually("nothing else is known") { try await stage.jobs().count == 1 }
        }
    }

    @Test func `a file whose name is taken stays in quarantine, and that is said with its place`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try scene.drop("sub/a", "mine")
            let job = try await stage.finished("sub/a", .failed)
            try scene.drop("sub/a", "another")
            try await stage.finished("sub/a")
            guard case .skipped(let why) = try await stage.agent.control.act(.retry, on: job.file.id) else {
                Issue.record("it was not refused")
                return
            }
            #expect(why.contains("quarantine") && why.contains(lying(stage).display))
            #expect(try text(lying(stage)) == "mine")
            let left = try #require(try await stage.journal.job(job.file.id)?.file)
            #expect(left.state == .failed && left.finishedAt != nil && left.intent == nil)
            #expect(left.disposition == Disposition.quarantined(lying(stage).display))
        }
    }

    @Test func `a file that is no longer in quarantine is refused, and nothing becomes gone`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try scene.drop("sub/a", "mine")
            let job = try await stage.finished("sub/a", .failed)
            let elsewhere = scene.directory.path.appending("elsewhere")
            try move(lying(stage), to: elsewhere)
            let outcome = try await stage.agent.control.act(.retry, on: job.file.id)
            guard case .skipped(let why) = outcome else {
                Issue.record("it was not refused")
                return
            }
            #expect(why.contains(lying(stage).display))
            #expect(try await stage.journal.job(job.file.id)?.file.state == .failed)
            // Another file in its place is not sent in its name.
            try scene.directory.write(Array("not it".utf8), to: "drop/.inlet/failed/sub/a")
            guard case .skipped(let other) = try await stage.agent.control.act(.retry, on: job.file.id) else {
                Issue.record("it was not refused")
                return
            }
            #expect(other.contains("another file"))
            // Back in quarantine it can be retried after all.
            try remove(lying(stage))
            try move(elsewhere, to: lying(stage))
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await stage.finished("sub/a")
        }
    }

    @Test func `a name of any bytes is found by what is shown of it`() {
        for name in ["plain", "with space", "tab\tnew\nline", "back\\slash", "ü\u{202E}x"] {
            #expect(DisplayText.unescape(DisplayText.escape(name)) == Array(name.utf8))
        }
        let bytes: [UInt8] = [0x61, 0xFF, 0xC3, 0x28]
        #expect(DisplayText.unescape(DisplayText.escape(bytes)) == bytes)
    }
}
