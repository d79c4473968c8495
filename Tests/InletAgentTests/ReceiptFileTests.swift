import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct ReceiptFileTests {
    @Test func `a receipt tells times, attempts, labels and what kind of file it was`() async throws {
        var scene = try Scene()
        scene.route.labels = ["camera": try KeyTemplate("{folder[1]}")]
        scene.here.script("a.mp4", .fail(.passing))
        try await scene.run { stage in
            try await stage.process("X100/a.mp4")
            let receipt = try object(try #require(try await stage.journal.receipts(limit: 1).first))
            #expect(receipt["labels"] as? [String: String] == ["camera": "X100"])
            #expect(receipt["media_type"] as? String == "video/mp4")
            #expect(receipt["category"] as? String == "videos")
            let delivery = try #require((receipt["deliveries"] as? [[String: Any]])?.first)
            #expect(delivery["attempts"] as? Int == 2)
            let times = [receipt["admitted_at"], delivery["started_at"], delivery["ended_at"], receipt["finished_at"]]
                .compactMap { ($0 as? String).flatMap { WallTime(rfc3339: $0) } }
            #expect(times.count == 4)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
            #expect(receipt["modified_at"] is String)
            // Only what leaves the journal says where it came from.
            #expect(receipt["host"] == nil && receipt["receipt_file"] == nil)
        }
    }

    @Test func `in the folder every job has one receipt, by the day of its admission`() async throws {
        var scene = try Scene()
        scene.route.receipts = .folder
        scene.here.script("bad", .fail(.hopeless))
        try await scene.run { stage in
            try scene.drop("a")
            try scene.drop("sub/bad")
            let good = try await stage.finished("a")
            let bad = try await stage.finished("sub/bad", .failed)
            for (job, name, state) in [(good, "a", "delivered"), (bad, "bad", "failed")] {
                let path = scene.receipts.pushing(FilePath("\(day(job))/\(job.file.id)-\(name).json"))
                let receipt = try object(Array(try text(path).utf8))
                #expect(receipt["job"] as? Int == Int(job.file.id))
                #expect(receipt["state"] as? String == state)
                #expect(receipt["receipt_file"] as? String == path.string)
                #expect(receipt["inlet"] as? String == "test")
                #expect((receipt["host"] as? String)?.isEmpty == false)
                #expect(try mode(path) == 0o600)
            }
            #expect(try names(in: scene.receipts.pushing(FilePath(day(good)))).count == 2)
            #expect(stage.events.count("receipt.elsewhere") == 0)
            #expect(try names(in: stage.root.appending("sub")) == ["bad"])
        }
    }

    @Test func `the receipt of a file that is sent again replaces the first one`() async throws {
        var scene = try Scene()
        scene.route.receipts = .folder
        scene.here.script("a", .fail(.hopeless))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            try await stage.retry(job)
            let folder = scene.receipts.pushing(FilePath(day(job)))
            #expect(try names(in: folder) == ["\(job.file.id)-a.json"])
            let receipt = try object(Array(try text(folder.appending("\(job.file.id)-a.json")).utf8))
            #expect(receipt["state"] as? String == "delivered")
            #expect((receipt["deliveries"] as? [[String: Any]])?.first?["attempts"] as? Int == 1)
        }
    }

    @Test func `a sidecar lies beside the file, wherever that is in the end, and is not taken in`() async throws {
        var scene = try Scene()
        scene.route.receipts = .sidecar
        scene.route.onSuccess = .archive
        scene.route.onFailure = .keep
        scene.here.script("bad", .fail(.hopeless))
        try await scene.run { stage in
            try scene.drop("sub/good")
            try scene.drop("sub/bad")
            let good = try await stage.finished("sub/good")
            try await stage.finished("sub/bad", .failed)
            let archive = stage.root.pushing(".inlet/done/sub")
            #expect(try names(in: archive) == ["good", "good.inlet-receipt.json"])
            let receipt = try object(Array(try text(archive.appending("good.inlet-receipt.json")).utf8))
            #expect(receipt["disposition"] as? String == good.file.disposition)
            #expect(try names(in: stage.root.appending("sub")) == ["bad", "bad.inlet-receipt.json"])
            #expect(try mode(archive.appending("good.inlet-receipt.json")) == 0o640)
            try await stage.process("last")
            #expect(try await stage.jobs().count == 3)
            #expect(!isThere(scene.receipts))
        }
    }

    @Test func `sent again and archived, a file leaves no receipt at its old place`() async throws {
        var scene = try Scene()
        scene.route.receipts = .sidecar
        scene.route.onSuccess = .archive
        scene.here.script("a", .fail(.hopeless))
        try await scene.run { stage in
            let job = try await stage.process("sub/a", as: .failed)
            #expect(try names(in: stage.root.appending("sub")) == ["a", "a.inlet-receipt.json"])
            try await stage.retry(job)
            #expect(try names(in: stage.root.appending("sub")) == [])
            #expect(try names(in: stage.root.pushing(".inlet/done/sub")) == ["a", "a.inlet-receipt.json"])
        }
    }

    @Test func `where the source is deleted its receipt is in the folder, and that is said once`() async throws {
        var scene = try Scene()
        scene.route.receipts = .sidecar
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            for name in ["a", "b", "c"] {
                let job = try await stage.process(FilePath(name))
                let path = scene.receipts.pushing(FilePath("\(day(job))/\(job.file.id)-\(name).json"))
                #expect(try object(Array(try text(path).utf8))["receipt_note"] is String)
            }
            #expect(try names(in: stage.root) == [".inlet"])
            try await eventually("it is said") { stage.events.count("receipt.elsewhere") == 1 }
        }
    }

    @Test(arguments: ["a folder", "a symlink"])
    func `what is in a sidecar's way holds no file up, and is not written through`(_ kind: String) async throws {
        var scene = try Scene()
        scene.route.receipts = .sidecar
        let victim = try scene.directory.write(Array("theirs".utf8), to: "victim")
        let blocked = scene.root.appending("a.inlet-receipt.json")
        if kind == "a folder" {
            try scene.directory.makeDirectory("drop/a.inlet-receipt.json")
        } else {
            try makeSymlink(blocked, to: victim)
        }
        try await scene.run { stage in
            let job = try await stage.process("a")
            let path = scene.receipts.pushing(FilePath("\(day(job))/\(job.file.id)-a.json"))
            #expect(try object(Array(try text(path).utf8))["state"] as? String == "delivered")
            try await eventually("it is said") { stage.events.count("receipt.elsewhere") == 1 }
            #expect(try text(victim) == "theirs")
            #expect(try FileLook.look(at: blocked).identity == nil)
        }
    }

    @Test func `without the folder a file waits, says so once, and is finished when there is room`() async throws {
        var scene = try Scene()
        scene.route.receipts = .folder
        let blocked = try scene.directory.write(Array("a file".utf8), to: "state/receipts")
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is said") { stage.events.count("job.disposition_failed") == 1 }
            let job = try await stage.job("a", "put off") { $0.file.disposition?.hasPrefix("waiting: ") == true }
            #expect(job.file.finishedAt == nil)
            try remove(blocked)
            try await stage.journal.postponeFinish(job.file.id, until: .now, note: "now")
            // The finisher sleeps until it has work: another file's end wakes it.
            try scene.drop("b")
            try await stage.finished("a")
            try await stage.finished("b")
        }
    }

    @Test(arguments: [
        ("clip.mp4", "clip.mp4"), ("a b/c", "a_b_c"), ("é", "__"), ("..", ".."), ("x\u{1B}[2J", "x__2J"),
    ])
    func `names in the folder are plain`(_ name: String, _ expected: String) {
        #expect(Receipt.safe(Array(name.utf8)) == expected)
    }

    @Test func `a name that leaves no room has no sidecar`() {
        let most = 255 - Receipt.suffix.utf8.count
        #expect(Receipt.path(beside: FilePath("/d").appending(String(repeating: "n", count: most))) != nil)
        #expect(Receipt.path(beside: FilePath("/d").appending(String(repeating: "n", count: most + 1))) == nil)
        #expect(Receipt.path(beside: "/d/clip.mp4") == "/d/clip.mp4.inlet-receipt.json")
    }

    private func object(_ json: [UInt8]) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any] ?? [:]
    }

    private func day(_ job: Job) -> String { String(job.file.admittedAt.rfc3339.prefix(10)).replacing("-", with: "/") }

    private func mode(_ path: FilePath) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path.string)[.posixPermissions] as? Int
    }
}

extension Scene {
    fileprivate var receipts: FilePath { directory.path.appending("state").appending("receipts") }
}

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
            let sent = try await stage.retry(job)
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
            let job = try await stage.process("sub/a", "mine", as: .failed)
            try await stage.process("sub/a", "another")
            let why = try #require(try await stage.agent.control.act(.retry, on: job.file.id).refusal)
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
            let job = try await stage.process("sub/a", "mine", as: .failed)
            let elsewhere = scene.directory.path.appending("elsewhere")
            try move(lying(stage), to: elsewhere)
            let outcome = try await stage.agent.control.act(.retry, on: job.file.id)
            let why = try #require(outcome.refusal)
            #expect(why.contains(lying(stage).display))
            #expect(try await stage.journal.job(job.file.id)?.file.state == .failed)
            // Another file in its place is not sent in its name.
            try scene.directory.write(Array("not it".utf8), to: "drop/.inlet/failed/sub/a")
            let other = try #require(try await stage.agent.control.act(.retry, on: job.file.id).refusal)
            #expect(other.contains("another file"))
            // Back in quarantine it can be retried after all.
            try remove(lying(stage))
            try move(elsewhere, to: lying(stage))
            try await stage.retry(job)
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
