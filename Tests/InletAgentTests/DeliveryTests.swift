import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@Suite struct DeliveryTests {
    @Test func `a file that is dropped is delivered under its key`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let job = try await stage.process("a.txt", "hello")
            #expect(job.deliveries.map(\.state) == [.delivered])
            #expect(job.file.disposition == Disposition.kept)
            #expect(scene.here.record.stored == ["a.txt": Array("hello".utf8)])
            // Said after it is in the journal.
            try await eventually("all is said") { stage.events.count("job.finished") == 1 }
            let said = stage.events.names.filter { $0.hasPrefix("job.") }
            #expect(said == ["job.admitted", "job.started", "job.delivered", "job.finished"])
        }
    }

    @Test func `passing trouble is tried again, always under the same key`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.passing), .fail(.passing))
        try await scene.run { stage in
            let job = try await stage.process("a")
            #expect(job.deliveries[0].attempts == 3)
            #expect(scene.here.record.orders.map(\.key) == ["a", "a", "a"])
            try await eventually("each is said") { stage.events.count("job.retry") == 2 }
        }
    }

    @Test func `a file fails when its attempts are used up`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 2
        scene.here.always(.fail(.passing))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            #expect(job.deliveries[0].code == .timedOut)
            #expect(job.deliveries[0].reason?.contains("given up after 2 attempts") == true)
            #expect(scene.here.record.orders.count == 2)
        }
    }

    @Test func `what cannot help is not tried again`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.hopeless))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            #expect(job.file.reason == DeliveryError.hopeless.reason)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a waiting delivery gives its worker back and costs no attempt`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, connections: 1)]
        scene.here.script("a", .wait(.seconds(15)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("a waits") { stage.events.names.contains("job.waiting") }
            try await stage.process("b")
            let job = try await stage.finished("a")
            #expect(job.deliveries[0].attempts == 1)
            #expect(scene.here.record.orders.map(\.key) == ["a", "b", "a"])
        }
    }

    @Test func `a file is delivered only when every destination has it`() async throws {
        var scene = try Scene()
        let slow = ScriptedPipeline()
        let gate = Gate()
        slow.always(.hold(gate, .deliver))
        scene.destinations.append(.scripted("slow", slow))
        scene.route.to = ["here", "slow"]
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            let file = try scene.drop("a")
            let job = try await stage.job("a", "with one of two") { $0.deliveries[0].state == .delivered }
            #expect(job.file.state == .pending)
            #expect(isThere(file))
            gate.open()
            try await stage.finished("a")
            #expect(!isThere(file))
        }
    }

    @Test func `the worst of several destinations decides, and then the source stays`() async throws {
        var scene = try Scene()
        let other = ScriptedPipeline()
        other.always(.fail(.hopeless))
        scene.destinations.append(.scripted("other", other))
        scene.route.to = ["here", "other"]
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            let file = try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(Set(job.deliveries.map(\.state)) == [.delivered, .failed])
            #expect(isThere(file))
        }
    }

    @Test func `content that changes under way is superseded, and the new one gets the same key`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(.changed)))
        try await scene.run { stage in
            try await stage.start("a", "old")
            try scene.drop("a", "new content")
            gate.open()
            try await stage.finished("a", .delivered)
            #expect(scene.here.record.stored == ["a": Array("new content".utf8)])
            #expect(
                try await stage.jobs().map(\.file.state).sorted { $0.rawValue < $1.rawValue } == [
                    .delivered, .superseded,
                ])
        }
    }

    /// A whole file, always of the same time, in the place of whatever is there.
    private func put(_ content: String, in scene: Scene) throws {
        let staged = try scene.directory.write(content.utf8, to: "staged")
        try setTime(staged)
        try move(staged, over: scene.root.appending("a"))
    }

    @Test func `another content of the same size and time, which one destination finds, goes to all`() async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations.append(.folder("library", library))
        scene.route.to = ["here", "library"]
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(.changed)))
        try await scene.run { [scene] stage in
            _ = try await stage.agent.control.setPaused(true, "library", by: "test")
            try put("old!", in: scene)
            try await eventually("it is on its way") { scene.here.record.running == 1 }
            try put("new!", in: scene)
            try await eventually("it was looked at") { stage.events.count("job.unchanged") > 0 }
            gate.open()
            try await stage.job("a", "found to be another one") { $0.deliveries.contains { $0.state == .superseded } }
            try await eventually("it was looked at again") { stage.events.count("job.unchanged") > 1 }
            _ = try await stage.agent.control.setPaused(false, "library", by: "test")
            try await eventually("both have it") {
                let held = try names(in: library).contains("a") ? text(library.appending("a")) : ""
                return held == "new!" && scene.here.record.stored["a"] == Array("new!".utf8)
            }
        }
    }

    @Test func `a person's cancel ends a stalled transfer at once, and what it left is removed`() async throws {
        let scene = try Scene()
        scene.here.script("a", .stall)
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.job("a", "claimed") { $0.deliveries[0].state == .claimed }
            try await eventually("it has noted its upload") { scene.here.record.running == 1 }
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            // By itself it would take an hour.
            try await eventually("the transfer has ended") { scene.here.record.running == 0 }
            try await stage.finished("a", .cancelled)
            try await eventually("the upload is removed") { scene.here.record.abandoned.map(\.key).contains("a") }
            #expect(isThere(stage.root.appending("a")))
        }
    }

    @Test func `a retry by a person starts with fresh attempts`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        scene.here.script("a", .fail(.passing))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            try await stage.retry(job)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) != .done)
        }
    }

    @Test func `a file is not gone while its whole root is away`() async throws {
        let scene = try Scene()
        let away = scene.directory.path.appending("away")
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await stage.admit("a")
            try move(stage.root, to: away)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.job("a", "put off") { $0.deliveries[0].code == .sourceGone }
            #expect(job.deliveries[0].state == .ready && job.deliveries[0].attempts == 0)
        }
    }

    @Test func `a file that vanishes before its turn ends as gone`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            let file = try scene.drop("a")
            try await stage.job("a")
            try remove(file)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.finished("a", .gone)
            #expect(job.file.code == .sourceGone)
            #expect(scene.here.record.orders.isEmpty)
        }
    }
}

/// Files whose content their destinations have.
@Suite struct DuplicateTests {
    private func scene(_ rule: DuplicateRule) throws -> Scene {
        var scene = try Scene()
        scene.route.dedupe = rule
        return scene
    }

    @Test(arguments: [(DuplicateRule.skip, FileState.duplicate), (.link, .delivered)])
    func `a second file of the same content is not sent`(rule: DuplicateRule, state: FileState) async throws {
        let scene = try scene(rule)
        try await scene.run { stage in
            let first = try await stage.process("a")
            try scene.drop("b")
            let job = try await stage.finished("b", state)
            #expect(scene.here.record.orders.map(\.key) == ["a"])
            #expect(job.deliveries.map { $0.proof?.key } == ["a"] && job.deliveries.map(\.key) == [nil])
            #expect(job.file.disposition == Disposition.kept)
            #expect(stage.events.field("same_as", of: "job.duplicate") == .number(first.file.id))
            let newest = try #require(try await stage.journal.receipts(limit: 1).first)
            let receipt = String(decoding: newest, as: UTF8.self)
            #expect(receipt.contains("\"state\":\"\(state.rawValue)\"") && receipt.contains("\"same_as\":\"1\""))
            #expect(receipt.contains("same content as job 1, \(stage.root.display)/a, which is there as a"))
            // The same file once more is no third one.
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test(arguments: [true, false])
    func `the second waits for the first, and is sent when that fails`(arrives: Bool) async throws {
        let scene = try scene(.skip)
        let gate = Gate()
        scene.here.script("a", .hold(gate, arrives ? .deliver : .fail(.hopeless)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("the first is under way") { scene.here.attempts(at: "a") == 1 }
            try scene.drop("b")
            try await stage.job("b", "waiting") { $0.deliveries.first?.reason?.hasPrefix("waits: job 1 ") == true }
            gate.open()
            let job = try await stage.finished("b", arrives ? .duplicate : .delivered)
            #expect(scene.here.attempts(at: "a") == 1 && scene.here.attempts(at: "b") == (arrives ? 0 : 1))
            #expect(job.deliveries.map(\.attempts) == [1])
            try await eventually("it is said") { stage.events.count("job.duplicate") == (arrives ? 1 : 0) }
        }
    }

    @Test(arguments: [(true, Disposition.deleted), (false, Disposition.kept)])
    func `a duplicate is deleted only where its content was proved, not its length`(
        isProved: Bool, disposition: String
    ) async throws {
        var scene = try scene(.skip)
        scene.route.onSuccess = .delete
        if isProved { scene.here.always(.prove) }
        try await scene.run { [scene] stage in
            #expect(try await stage.process("a").file.disposition == Disposition.deleted)
            let second = try scene.drop("b")
            #expect(try await stage.finished("b", .duplicate).file.disposition == disposition)
            #expect(isThere(second) != isProved)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a duplicate of a unit is in its place among the others`() async throws {
        var scene = try Scene.units(.marker)
        scene.route.dedupe = .skip
        try await scene.run { [scene] stage in
            try await stage.admit("gigs/one/a")
            try scene.drop("gigs/one/DONE", "")
            try await stage.finished("gigs/one/a")
            try scene.drop("gigs/two/a")
            try scene.drop("gigs/two/b", "another")
            let job = try await stage.job("gigs/two/a")
            #expect(job.file.state == .pending)
            try await stage.job("gigs/two/b")
            try scene.drop("gigs/two/DONE", "")
            try await stage.finished("gigs/two/a", .duplicate)
            try await stage.finished("gigs/two/b")
            try await eventually("both units have ended") { stage.events.count("batch.ended") == 2 }
            let batch = try #require(try await stage.journal.batch(of: job.file.id))
            #expect(batch.state == .delivered && batch.counts == [.delivered: 1, .duplicate: 1])
            #expect(scene.here.record.stored.keys.sorted() == ["gigs/one/a", "gigs/two/b"])
        }
    }
}

@Suite struct MediaTypeTests {
    /// The head of a PNG.
    private static let picture: [UInt8] = [
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
        2,
        0, 0, 0,
    ]
    /// The head of a program for DOS.
    private static let program = Array("MZ".utf8) + [UInt8](repeating: 0, count: 126)

    @Test func `a program that is called a video is rejected, with what it is and what it is called`() async throws {
        var scene = try Scene()
        scene.route.validate.mediaTypes = [try MediaTypePattern("video/*"), try MediaTypePattern("image/*")]
        try await scene.run { stage in
            try scene.directory.write(Self.program, to: "drop/evil.mp4")
            try scene.directory.write(Self.picture, to: "drop/picture")
            let job = try await stage.finished("evil.mp4", .rejected)
            let reason = try #require(job.file.reason)
            #expect(reason.hasPrefix("its content is application/"))
            #expect(reason.hasSuffix(", its name says video/mp4; route 'all' takes video/*, image/*"))
            let accepted = try await stage.finished("picture")
            #expect(accepted.file.mediaType == "image/png")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["picture"])
    }

    @Test func `a route takes files by what they are`() async throws {
        var scene = try Scene()
        scene.route.match.mediaTypes = [try MediaTypePattern("image/png")]
        scene.route.key = try KeyTemplate("pictures/{name}")
        scene.others = [Route(name: "others", key: try KeyTemplate("others/{name}"), to: ["here"])]
        try await scene.run { stage in
            try scene.directory.write(Self.picture, to: "drop/a.txt")
            try scene.drop("b.png", "words")
            try await stage.finished("a.txt")
            try await stage.finished("b.png")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["others/b.png", "pictures/a.txt"])
    }
}

@Suite struct CaptureDateTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{captured:yyyy-MM-dd@Europe/Berlin}/{name}")
        // 2020-01-02T12:00:00Z, so that nothing but the picture can know its own day.
        let modified = Date(timeIntervalSince1970: 1_577_966_400)
        let dated = try scene.directory.write(DatedPicture.jpeg("2024:05:06 23:59:58"), to: "drop/dated.jpg")
        let plain = try scene.drop("plain.jpg", "no picture at all")
        for file in [dated, plain] {
            try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file.string)
        }
        return scene
    }

    @Test func `a picture goes where its own date says, another where its mtime says, and that is said`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try await stage.finished("dated.jpg")
            try await stage.finished("plain.jpg")
            #expect(Set(scene.here.record.stored.keys) == ["2024-05-06/dated.jpg", "2020-01-02/plain.jpg"])
            let notes = stage.events.all.compactMap { event in
                if case .fileNote(_, let path, let route, let note) = event { [path.string, route, note] } else { nil }
            }
            let note =
                "the file has no capture date; {captured} uses its modification time, 2020-01-02T12:00:00.000Z"
            #expect(notes == [[stage.root.appending("plain.jpg").string, "all", note]])
        }
    }

    @Test func `a destination's field can be the date of capture`() async throws {
        var scene = try scene()
        scene.route.key = try KeyTemplate("{name}")
        scene.route.with = ["event_date": try KeyTemplate("{captured:yyyy-MM-dd}")]
        try await scene.run { stage in
            let job = try await stage.finished("dated.jpg")
            #expect(job.deliveries.map(\.fields) == [["event_date": "2024-05-06"]])
        }
    }
}
