import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Writers as they are, against a running agent.
@Suite struct CompletionTests {
    private func unsettled(_ stage: Stage) -> RootStatus.Unsettled? {
        stage.rootStatus?.unsettled.first
    }

    @Test func `a file that never settles is shown with the process that holds it, logged once, never given up`()
        async throws
    {
        var scene = try Scene()
        scene.watch[0].unsettledAfter = .seconds(3)
        let file = try scene.drop("recording.wav", "half")
        try await whileWriting(file) {
            try await scene.run { stage in
                try await eventually("its holder is shown") { unsettled(stage)?.holder != nil }
                let shown = try #require(unsettled(stage))
                #expect(shown.path == file && shown.busy)
                try await eventually("it is logged") { stage.events.count("file.unsettled") == 1 }
                func field(_ name: String) -> EventValue? { stage.events.field(name, of: "file.unsettled") }
                #expect(field("path") == .text(file.display))
                guard case .text(let reason)? = field("reason"), case .number(let waiting)? = field("waiting_ms") else {
                    throw Unexpected(description: "the event says no reason and no time")
                }
                #expect(reason.hasPrefix("open for writing by ") && waiting >= 3000)
                #expect(try await stage.jobs().isEmpty)
            }
        }
        try await scene.run { stage in try await stage.finished("recording.wav") }
        #expect(scene.here.record.stored["recording.wav"] == Array("half".utf8))
    }

    @Test func `space that was set aside is not taken for content while its writer has it open`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = stage.root.appending("card.mp4")
            let writer = try FileDescriptor.open(
                file, .readWrite, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
            try #require(posix_fallocate(writer.rawValue, 0, 20_000) == 0)
            try setTime(file, Date(timeIntervalSince1970: 1e9))
            try await eventually("it is seen as busy") { unsettled(stage)?.busy == true }
            try writer.writeAll([UInt8](repeating: 7, count: 20_000))
            try writer.close()
            try await stage.finished("card.mp4")
        }
        #expect(scene.here.record.stored["card.mp4"] == [UInt8](repeating: 7, count: 20_000))
    }

    @Test func `a writer that has mapped the file and closed it is waited for`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.directory.write([UInt8](repeating: 0, count: 4096), to: "mapped")
            let descriptor = try FileDescriptor.open(file, .readWrite, options: .closeOnExec)
            let page = try #require(
                mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), descriptor.rawValue, 0))
            try descriptor.close()
            try move(file, to: stage.root.appending("mapped.bin"))
            try await eventually("it is seen as busy") { unsettled(stage)?.busy == true }
            page.storeBytes(of: 0x2A, as: UInt8.self)
            munmap(page, 4096)
            try await stage.finished("mapped.bin")
        }
        #expect(scene.here.record.stored["mapped.bin"]?.first == 0x2A)
    }

    @Test func `holes are content: a sparse file arrives at its full length`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let draft = scene.directory.path.appending("sparse")
            let writer = try FileDescriptor.open(
                draft, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
            try writer.writeAll([1])
            _ = try writer.seek(offset: 59_999, from: .start)
            try writer.writeAll([2])
            try writer.close()
            try move(draft, to: stage.root.appending("sparse"))
            try await stage.finished("sparse")
        }
        #expect(scene.here.record.stored["sparse"] == [1] + [UInt8](repeating: 0, count: 59_998) + [2])
    }

    @Test(
        arguments: [
            ".film.mp4.aB3xYz", ".~tmp~/film.mp4", ".rsync-partial/film.mp4", "film.mp4.filepart", ".in.film.mp4.",
            ".pureftpd-upload.5f3e.15.1a2b.c3", "film.mp4.crdownload", "Unconfirmed 4711.crdownload", "film.mp4.part",
            "film.mp4.!qB", "film.mp4.tmp", ".pending-1700000000-film.mp4",
        ] as [FilePath])
    func `copy programs' temporary names are one arrival, under the name that they end with`(
        name: FilePath
    ) async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let temporary = stage.root.pushing(name)
            if name.components.count > 1 {
                try scene.directory.makeDirectory(FilePath("drop").pushing(name).removingLastComponent())
            }
            for content in ["begun", "begun and whole"] {
                try Data(content.utf8).write(to: URL(fileURLWithPath: temporary.string))
            }
            // What was dropped before this one has been looked at then.
            try await stage.process("sentinel")
            #expect(try await stage.jobs().count == 1)
            try move(temporary, to: stage.root.appending("film.mp4"))
            try await stage.finished("film.mp4")
            #expect(try await stage.jobs().map(\.file.path) == ["film.mp4", "sentinel"])
        }
        #expect(scene.here.record.orders.map(\.key) == ["sentinel", "film.mp4"])
        #expect(scene.here.record.stored["film.mp4"] == Array("begun and whole".utf8))
    }

    @Test func `a file that is rewritten after it was taken ends as what it is at last`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("film.mp4", "moov at the end")
            let first = try await stage.finished("film.mp4")
            // Another program moves the index to the front, in place.
            try overwrite(file, "the moov is first")
            let last = try await stage.job("film.mp4", "delivered anew") { job in
                job.file.id != first.file.id && job.file.state == .delivered
            }
            #expect(scene.here.record.stored[last.deliveries[0].key ?? ""] == Array("the moov is first".utf8))
        }
    }

    @Test func `a route's own settle time counts, also where the size decides which route that is`() async throws {
        var scene = try Scene()
        scene.watch[0].settle = .seconds(3600)
        var small = scene.route
        (small.name, small.match, small.settle) = ("small", RouteMatch(maxSize: 10), .zero)
        scene.others = [scene.route]
        scene.route = small
        try await scene.run { stage in
            let large = try scene.drop("large", String(repeating: "x", count: 100))
            #expect(try await stage.process("small", "tiny").file.route == "small")
            try await eventually("the other is seen, and waits for as long as its own route says") {
                unsettled(stage)?.path == large && unsettled(stage)?.why == "waiting for its route's settle time"
            }
            #expect(try await stage.jobs().count == 1)
        }
    }

    @Test func `a file that is never quiet is said to change, and not to be open`() async throws {
        var scene = try Scene()
        scene.watch[0].settle = .seconds(3600)
        try await scene.run { stage in
            let file = try scene.drop("log", "one")
            try await eventually("its changes are counted") {
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file.string))
                try handle.seekToEnd()
                try handle.write(contentsOf: Data("more".utf8))
                try handle.close()
                return unsettled(stage)?.why?.hasPrefix("it keeps changing: ") ?? false
            }
            #expect(unsettled(stage)?.busy == false)
            #expect(try await stage.jobs().isEmpty)
        }
    }

    @Test func `a time in the future keeps a file no longer than its settle time`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let draft = try scene.directory.write([1], to: "draft")
            try setTime(draft, Date(timeIntervalSince1970: 4e9))
            try move(draft, to: stage.root.appending("late.bin"))
            try await stage.finished("late.bin")
        }
    }

    @Test func `names in two Unicode normal forms are two files with two keys, and that is said`() async throws {
        let scene = try Scene()
        // By the bytes of their names: what Foundation writes has normal form D on some systems.
        let composed = FilePath(bytes: Array("caf\u{E9}.jpg".utf8))
        let decomposed = FilePath(bytes: Array("cafe\u{301}.jpg".utf8))
        try await scene.run { stage in
            try overwrite(stage.root.pushing(composed), "one", .create)
            try await stage.finished(composed)
            #expect(stage.events.count("file.note") == 0)
            try overwrite(stage.root.pushing(decomposed), "two", .create)
            try await stage.finished(decomposed)
            try await eventually("it is said") { stage.events.count("file.note") == 1 }
            #expect(try await stage.jobs().count == 2)
        }
        #expect(
            scene.here.record.stored == ["caf\u{E9}.jpg": Array("one".utf8), "caf\u{E9}_2.jpg": Array("two".utf8)])
    }

    @Test func `names that differ in case only are two files with two keys`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            for name in ["IMG.JPG", "img.jpg"] as [FilePath] { try await stage.process(name, name.string) }
        }
        #expect(scene.here.record.stored.keys.sorted() == ["IMG.JPG", "img.jpg"])
    }
}

/// Deliveries that destinations work on for a while.
@Suite struct WaitingTests {
    @Test func `twenty jobs that run keep no worker from a file`() async throws {
        var scene = try Scene()
        scene.workers = 1
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0, connections: 2)]
        scene.here.always(.wait(.seconds(3600)))
        let held = scene
        try await held.run { stage in
            for number in 0..<20 { try held.drop(FilePath("job-\(number)")) }
            try await eventually("all wait") { stage.events.count("job.waiting") == 20 }
            held.here.script("film", .deliver)
            try held.drop("film")
            try await stage.finished("film")
            #expect(try await stage.journal.waiting(limit: 100).count == 20)
        }
    }

    @Test func `polls are said once, and what they say is seen`() async throws {
        let scene = try Scene()
        let soon = Duration.milliseconds(20)
        let gate = Gate()
        scene.here.script(
            "film", .work(StepProgress(percent: 72, step: "extracting"), saying: "extracting frames", for: soon),
            .work(StepProgress(percent: 80, step: "scoring"), saying: "scoring", for: soon), .wait(soon),
            .hold(gate, .deliver))
        try await scene.run { stage in
            try scene.drop("film")
            try await eventually("it is asked again and again") { scene.here.record.orders.count == 4 }
            let running = try #require(stage.agent.control.live?.inFlight.first)
            // What was reported last holds until something else is.
            #expect(running.step == StepProgress(percent: 80, step: "scoring"))
            gate.open()
            let job = try await stage.finished("film")
            #expect(job.deliveries[0].attempts == 1 && job.deliveries[0].reason == nil)
            #expect(stage.agent.control.live?.step(job.deliveries[0].id) == nil)
            let lines = stage.events.all.map(\.line)
            #expect(lines.filter { $0.name == "job.started" }.map(\.level) == [.info, .debug, .debug, .debug])
            let waits = lines.filter { $0.name == "job.waiting" }
            #expect(waits.map(\.level) == [.info, .debug, .debug])
            #expect(waits[0].fields.contains { $0.0 == "reason" && $0.1 == .text("extracting frames") })
            let progress = try #require(lines.first { $0.name == "transfer.progress" })
            #expect(progress.fields.contains { $0.0 == "percent" && $0.1 == .number(72) })
            #expect(progress.fields.contains { $0.0 == "step" && $0.1 == .text("extracting") })
        }
    }

    @Test func `progress has a line every five percent or five seconds, whichever is later`() {
        let start = ContinuousClock.now
        let reports: [(seconds: Int, percent: Double, isDue: Bool)] = [
            (0, 3, false), (1, 5, true), (2, 50, false), (5, 9.9, false), (6, 10, true), (20, 14, false),
            (30, 95, true), (31, 20, false), (40, 24, false), (41, 26, true),
        ]
        var pace = ProgressPace()
        for report in reports {
            let time = start.advanced(by: .seconds(report.seconds))
            #expect(pace.isDue(report.percent, at: time) == report.isDue, "\(report)")
        }
    }

    @Test func `a step is remembered for as long as its delivery waits`() {
        let inFlight = Transfers()
        let step = StepProgress(percent: 40, step: "s")
        #expect(inFlight.note(step, of: 1, at: .now) && !inFlight.note(step, of: 1, at: .now))
        #expect(inFlight.step(1) == step && inFlight.step(2) == nil)
        inFlight.forgetStep(of: 1)
        #expect(inFlight.step(1) == nil)
        for delivery in 0..<20_001 { _ = inFlight.note(step, of: Int64(delivery), at: .now) }
        #expect(inFlight.step(0) == nil && inFlight.step(20_000) == step)
    }
}
