import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// What a person says about files that were not sent, and what an agent then does with their sources.
@Suite struct AnswerTests {
    /// Files go to a real folder, and each content once.
    private static func scene() throws -> Scene {
        var scene = try Scene()
        scene.destinations = [.folder("nas", try scene.directory.makeDirectory("nas"))]
        (scene.route.to, scene.route.dedupe) = (["nas"], .skip)
        return scene
    }

    private static func delivered(_ scene: Scene, _ name: FilePath) -> FilePath {
        scene.directory.path.appending("nas").pushing(name)
    }

    /// Orders it for a duplicate `b` of `a`, and waits for the end.
    private func end(_ action: JobAction, _ stage: Stage) async throws -> Job {
        let job = try await stage.job("b", "a finished duplicate") {
            $0.file.state == .duplicate && $0.file.finishedAt != nil
        }
        #expect(try await stage.agent.control.act(action, on: job.file.id) == .done)
        return try await stage.job("b", "at its end") { job in
            job.file.finishedAt != nil && job.file.policy.answer == nil && job.file.disposition != Disposition.kept
        }
    }

    @Test func `a duplicate is removed when its destination has proved that it has every byte`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            try await stage.process("b", "one content", as: .duplicate)
            let job = try await end(.remove, stage)
            let said = try #require(job.file.disposition)
            #expect(said.hasPrefix("deleted: nas has it (all bytes read: length, sha256), asked "))
            #expect(!isThere(stage.root.appending("b")))
            #expect(try text(Self.delivered(scene, "a")) == "one content")
            let receipt = try #require(try await stage.journal.receipt(ofJob: job.file.id))
            #expect(String(decoding: receipt, as: UTF8.self).contains(said))
            // The same content dropped there again is a new file.
            try scene.drop("b", "one content")
            try await stage.job("b", "new") { $0.file.id != job.file.id && $0.file.finishedAt != nil }
        }
    }

    /// What its destination no longer has, or has differently, of the same length; and one that does not answer.
    @Test(arguments: ["missing", "another", "away"])
    func `without a proof of now a duplicate keeps its name, and its answer says why`(fate: String) async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            let file = try await stage.process("b", "one content", as: .duplicate).file.fullPath
            switch fate {
            case "missing": try remove(Self.delivered(scene, "a"))
            case "another": try edit(Self.delivered(scene, "a"), "ONE CONTENT")
            default: try move(scene.directory.path.appending("nas"), to: scene.directory.path.appending("gone"))
            }
            let job = try await end(.remove, stage)
            #expect(job.file.disposition?.hasPrefix("kept: not removed: nas: ") == true)
            #expect(job.file.state == .duplicate)
            #expect(try text(file) == "one content")
            #expect(try names(in: stage.root).filter { $0.hasPrefix(".inlet-finishing") }.isEmpty)
            #expect(job.actions.contains(.remove), "a person may ask again")
            // It is the known file still.
            guard fate != "away" else { return }
            try await stage.process("c", "another")
            #expect(try await stage.jobs().count == 3)
        }
    }

    /// Its destination is a folder in the watched one: what was delivered is found there, and counts as a duplicate.
    @Test func `what a destination has is never removed as a duplicate of itself`() async throws {
        var scene = try Scene()
        scene.destinations = [.folder("nas", try scene.directory.makeDirectory("drop/nas"))]
        (scene.route.to, scene.route.dedupe) = (["nas"], .skip)
        try await scene.run { stage in
            try await stage.process("a", "one content")
            let job = try await stage.finished("nas/a", .duplicate)
            #expect(try await stage.agent.control.act(.remove, on: job.file.id) == .done)
            let end = try await stage.job("nas/a", "kept") {
                Disposition.isKept($0.file.disposition) && $0.file.disposition != Disposition.kept
            }
            #expect(try text(end.file.fullPath) == "one content")
        }
    }

    @Test func `what changed since it was called a duplicate is not removed, but sent`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            let job = try await stage.process("b", "one content", as: .duplicate)
            try await whileWriting(job.file.fullPath) {
                #expect(try await stage.agent.control.act(.remove, on: job.file.id) == .done)
                try await stage.job("b", "waiting") { $0.file.disposition?.hasPrefix("waiting: open") == true }
                try edit(job.file.fullPath, "new content")
                // Not after half a minute, but at the finisher's next turn.
                try await stage.journal.postponeFinish(job.file.id, until: .now, note: "looked at next")
            }
            try await stage.process("c", "yet another")
            try await stage.job("b", "sent") { $0.file.state == .delivered }
            #expect(try text(job.file.fullPath) == "new content")
        }
    }

    /// Files go to `here`, which has no answer before the gate opens; only what a person removes is asked for.
    private static func asking(_ gate: Gate) throws -> Scene {
        var scene = try Scene()
        scene.here.always(.prove)
        scene.here.holdQuestions(gate)
        (scene.route.dedupe, scene.route.onSuccess) = (.skip, .keep)
        var archived = scene.route
        (archived.name, archived.onSuccess, archived.match.extensions) = ("archived", .archive, ["mov"])
        scene.others = [scene.route]
        scene.route = archived
        return scene
    }

    private func removed(_ stage: Stage) async throws -> Job {
        try await stage.process("a", "one content")
        let job = try await stage.process("b", "one content", as: .duplicate)
        #expect(try await stage.agent.control.act(.remove, on: job.file.id) == .done)
        try await eventually("it is asked") { stage.scene.here.record.calls.contains("verify") }
        return job
    }

    @Test func `a destination that does not answer holds up no other file, and hides none meanwhile`() async throws {
        let gate = Gate()
        let scene = try Self.asking(gate)
        try await scene.run { stage in
            let file = try await removed(stage).file.fullPath
            let other = try await stage.process("c.mov", "another").file
            #expect(other.disposition?.hasPrefix("archived: ") == true)
            #expect(try text(file) == "one content")
            gate.open()
            let end = try await stage.job("b", "kept") { $0.file.disposition?.hasPrefix("kept: not removed: ") == true }
            #expect(try text(end.file.fullPath) == "one content")
        }
    }

    @Test func `a stop keeps the order, and the next start carries on with it`() async throws {
        let scene = try Self.asking(Gate())
        try await scene.run { stage in _ = try await removed(stage) }
        let journal = try Journal(path: scene.journalPath, now: .now)
        let job = try #require(try await journal.jobs(FileFilter()).first { $0.file.path == "b" })
        journal.close()
        #expect(job.file.policy.answer == .removed && job.file.finishedAt == nil)
        #expect(try text(job.file.fullPath) == "one content")
        let open = Gate()
        open.open()
        scene.here.holdQuestions(open)
        try await scene.run { stage in
            try await stage.job("b", "kept") { $0.file.disposition?.hasPrefix("kept: not removed: ") == true }
        }
    }

    @Test func `an order that has not begun is withdrawn, and the file stays`() async throws {
        let gate = Gate()
        let scene = try Self.asking(gate)
        try await scene.run { stage in
            let job = try await removed(stage)
            #expect(try await stage.agent.control.act(.leave, on: job.file.id) == .done)
            let end = try await stage.job("b", "left") { $0.file.finishedAt != nil }
            #expect(end.file.policy.answer == .left && end.file.disposition == Disposition.kept)
            gate.open()
            try await stage.process("c", "another")
            #expect(try text(job.file.fullPath) == "one content")
        }
    }

    @Test func `a destination that is paused is not asked, and the file keeps its name`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            let file = try await stage.process("b", "one content", as: .duplicate).file.fullPath
            _ = try await stage.agent.control.setPaused(true, "nas", by: "the test")
            let job = try await end(.remove, stage)
            #expect(job.file.disposition == "kept: not removed: nas: it is down or paused now")
            #expect(try text(file) == "one content")
        }
    }

    @Test func `an answer counts no file as ended once more`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            try await stage.process("b", "one content", as: .duplicate)
            try await eventually("both have ended") { stage.events.count("job.finished") == 2 }
            let before = stage.agent.control.live?.recent.ok
            _ = try await end(.aside, stage)
            try await eventually("it is logged") { stage.events.count("job.answered") == 1 }
            #expect(stage.agent.control.live?.recent.ok == before && stage.events.count("job.finished") == 2)
        }
    }

    @Test func `a duplicate is moved to the archive, and a rejected file to quarantine`() async throws {
        var scene = try Self.scene()
        scene.route.validate = Validation(maxSize: 20)
        try await scene.run { stage in
            try await stage.process("a", "one content")
            try await stage.process("b", "one content", as: .duplicate)
            let archived = try await end(.aside, stage)
            let place = stage.root.pushing(".inlet/done/b")
            #expect(archived.file.disposition == Disposition.archived(place.display))
            #expect(try text(place) == "one content" && !isThere(stage.root.appending("b")))

            let refused = try await stage.process("big", "more than twenty bytes of it", as: .rejected)
            #expect(try await stage.agent.control.act(.remove, on: refused.file.id).refusal != nil)
            #expect(try await stage.agent.control.act(.aside, on: refused.file.id) == .done)
            let quarantine = stage.root.pushing(".inlet/failed/big")
            try await eventually("it is moved") { isThere(quarantine) }
            let job = try await stage.job("big", "finished") { $0.file.finishedAt != nil && $0.file.disposition != nil }
            #expect(job.file.disposition == Disposition.quarantined(quarantine.display))
            #expect(job.file.state == .rejected && job.actions == [.forget])
        }
    }

    @Test func `the number that is said before is of the files that an answer concerns`() async throws {
        var scene = try Self.scene()
        scene.route.validate = Validation(maxSize: 20)
        try await scene.run { stage in
            try await stage.process("a", "one content")
            for name in ["b", "c", "d"] as [FilePath] { try await stage.process(name, "one content", as: .duplicate) }
            try await stage.process("big", "more than twenty bytes of it", as: .rejected)
            let control = stage.agent.control
            let filter = FileFilter(states: [.duplicate, .rejected, .delivered], limit: .max)
            let plan = try await control.act(.remove, on: filter, dryRun: true)
            #expect(plan.matched == 3 && plan.bytes == 33 && plan.done == 0)
            #expect(
                plan.skipped == [
                    "is neither a duplicate nor rejected": 1, "is not a duplicate: no destination has it": 1,
                ])
            #expect(try await stage.jobs().allSatisfy { $0.file.policy.answer == nil })
            let others = try await control.act(.cancel, on: filter, dryRun: true)
            #expect(others.matched == 0 && others.bytes == 0 && others.skipped == ["has already ended": 5])
            #expect(try await control.act(.forget, on: filter, dryRun: true).matched == 5)
            #expect(try await stage.journal.rejectedLeft() == 0)
            let done = try await control.act(.leave, on: filter)
            #expect(done.matched == 4 && done.done == 4)
            var open = FileFilter()
            open.isUnanswered = true
            open.states = [.duplicate, .rejected]
            #expect(try await stage.journal.jobs(open).isEmpty)
            #expect(try await stage.journal.rejectedLeft() == 1)
            #expect(isThere(stage.root.appending("b")) && isThere(stage.root.appending("big")))
        }
    }

    @Test func `an agent that may not change its folders offers no order that does, and says what to set`() async throws
    {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("a", "one content")
            let job = try await stage.process("b", "one content", as: .duplicate)
            let control = AgentControl(journal: stage.journal)
            #expect(control.actions(on: job) == [.leave, .forget])
            #expect(try await control.act(.aside, on: job.file.id) == .skipped("stays: no agent is running"))
            #expect(stage.agent.control.actions(on: job) == [.leave, .aside, .remove, .forget])
        }
    }
}

/// Questions to destinations.
@Suite struct QuestionLineTests {
    @Test func `an asker goes on without the answer of a destination that hangs, and that gets no other question`()
        async throws
    {
        let line = QuestionLine()
        let hung = Mutex<CheckedContinuation<Void, Never>?>(nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await withDiscardingTaskGroup { questions in
                    await line.serve { question in questions.addTask { await question() } }
                }
            }
            let late = await line.answer(of: "nas", within: .milliseconds(20)) {
                // A disk that hangs hears nothing.
                await withCheckedContinuation { continuation in
                    hung.withLock { $0 = continuation }
                    Happening.ring()
                }
                return .proved("late")
            }
            #expect(late != .proved("late"))
            let next = await line.answer(of: "nas", within: .seconds(60)) { .proved("asked") }
            #expect(next == .unproved("it has not answered an earlier question yet"))
            #expect(await line.answer(of: "here", within: .seconds(300)) { .proved("here") } == .proved("here"))
            try await eventually("it hangs") { hung.withLock { $0 != nil } }
            hung.withLock(\.self)?.resume()
            group.cancelAll()
        }
    }
}

/// What Inlet leaves alone, by a look at the folder.
@Suite struct IgnoredFileTests {
    @Test func `ignored files are listed with their reasons, and what is taken or known is not`() async throws {
        var scene = try Scene()
        scene.route.match.extensions = ["mov"]
        scene.watch[0].ignore = [try GlobPattern("*.log")]
        try await scene.run { stage in
            try await stage.process("a.mov")
            for name in ["b.txt", "c.log", "sub/d.part", ".DS_Store"] as [FilePath] { try scene.drop(name) }
            let found = try #require(try await stage.agent.control.ignored(in: stage.root, limit: 100))
            let reasons = Dictionary(
                uniqueKeysWithValues: found.files.map { ($0.path.lastComponent?.string ?? "", $0.reason) })
            #expect(reasons["b.txt"]?.hasPrefix("no route takes it (all: ") == true)
            #expect(reasons["c.log"] == "it matches '*.log' in the folder's 'ignore'")
            #expect(reasons["d.part"] == "'d.part' is on the built-in ignore list: *.part")
            #expect(reasons[".DS_Store"] != nil && reasons["a.mov"] == nil && !found.isMore)
            // What a route took in former times is known.
            #expect(reasons.keys.contains("a.mov") == false)
        }
    }

    @Test func `a look ends at its limit, and says that there may be more`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            for number in 0..<30 { try scene.drop(FilePath("\(number).tmp")) }
            let found = try #require(try await stage.agent.control.ignored(in: stage.root, limit: 10))
            #expect(found.files.count <= 10 && found.isMore)
            #expect(try await stage.agent.control.ignored(in: "/", limit: 10) == nil)
        }
    }

    @Test func `a folder that is away is not looked at`() async throws {
        var scene = try Scene()
        scene.watch[0].path = scene.directory.path.appending("nowhere")
        try await scene.run { stage in
            try await eventually("it is missing") { stage.rootStatus?.state == .missing }
            #expect(try await stage.agent.control.ignored(in: stage.scene.watch[0].path, limit: 10) == nil)
        }
    }
}

/// The small picture of a file's page.
@Suite struct PictureTests {
    private static let picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0, 2, 1, 2, 3, 0xFF, 0xD9]

    /// A JPEG file with nothing but that: an EXIF block of an empty directory, and of one with the picture.
    private static let file: [UInt8] = {
        func entry(_ tag: UInt8, _ value: UInt8) -> [UInt8] { [0x02, tag, 0, 4, 0, 0, 0, 1, 0, 0, 0, value] }
        let header: [UInt8] = Array("MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 14]
        let block = header + [0, 2] + entry(1, 44) + entry(2, UInt8(picture.count)) + [0, 0, 0, 0] + picture
        let segment = Array("Exif\0\0".utf8) + block
        return [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(segment.count + 2)] + segment + [
            0xFF, 0xDA, 0, 2, 1, 2, 3, 0xFF, 0xD9,
        ]
    }()

    @Test func `a file has the picture in it while it is the admitted one`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.directory.write(Self.file, to: "drop/a.jpg")
            let job = try await stage.finished("a.jpg")
            #expect(try await stage.agent.control.picture(of: job.file.id) == Self.picture)
            #expect(try await stage.agent.control.story(job.file.id)?.mayHavePicture == true)
            let other = try await stage.process("b.txt")
            #expect(try await stage.agent.control.story(other.file.id)?.mayHavePicture == false)
            #expect(try await AgentControl(journal: stage.journal).picture(of: job.file.id) == nil)
            try remove(job.file.fullPath)
            #expect(try await stage.agent.control.picture(of: job.file.id) == nil)
            // Another file under its name.
            try scene.directory.write(Self.file + [1], to: "drop/a.jpg")
            #expect(try await stage.agent.control.picture(of: job.file.id) == nil)
        }
    }
}
