import Foundation
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct FinishingTests {
    @Test func `a delivered file is kept where the route says so`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("a")
            #expect(try await stage.finished("a").file.disposition == Disposition.kept)
            #expect(try text(file) == "content")
        }
    }

    @Test func `an archived file keeps its relative path, and a taken name is numbered`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            let file = try await stage.process("gigs/2026/a.txt", "one").file.fullPath
            let archive = stage.root.pushing(".inlet/done/gigs/2026")
            try scene.drop("gigs/2026/a.txt", "two")
            try await eventually("the second is archived") { isThere(archive.appending("a_2.txt")) }
            #expect(try text(archive.appending("a.txt")) == "one")
            #expect(try text(archive.appending("a_2.txt")) == "two")
            #expect(!isThere(file))
            try await eventually("both are finished") { try await stage.journal.receipts(limit: 9).count == 2 }
            let places = try await stage.jobs().map(\.file.disposition)
            #expect(places[0] == "archived: \(archive.appending("a_2.txt").display)")
        }
    }

    @Test(.enabled(if: isOtherFileSystem("/dev/shm")))
    func `an archive on another file system gets a copy, and only then the source goes`() async throws {
        var scene = try Scene()
        let memory = try TemporaryDirectory.inMemory()
        defer { withExtendedLifetime(memory) {} }
        let shelf = memory.path
        scene.watch[0].archiveDirectory = shelf
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            let file = try await stage.process("sub/a", "far").file.fullPath
            #expect(try text(shelf.pushing("sub/a")) == "far")
            #expect(!isThere(file))
            #expect(try names(in: shelf.appending("sub")) == ["a"])
        }
    }

    @Test func `a delivered file is deleted where the route says so`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            let job = try await stage.process("sub/a")
            #expect(job.file.disposition == Disposition.deleted)
            #expect(try names(in: stage.root.appending("sub")) == [])
        }
    }

    @Test func `a failed file is quarantined beside the reason`() async throws {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.always(.fail(.hopeless))
        try await scene.run { stage in
            let file = try await stage.process("sub/a.bin", as: .failed).file.fullPath
            let place = stage.root.pushing(".inlet/failed/sub")
            #expect(!isThere(file))
            #expect(try text(place.appending("a.bin")) == "content")
            let reason = try text(place.appending("a.bin.reason.json"))
            let object = try JSONSerialization.jsonObject(with: Data(reason.utf8)) as? [String: Any]
            #expect(object?["reason"] as? String == DeliveryError.hopeless.reason)
            #expect(object?["code"] as? String == "bad_request")
        }
    }

    @Test func `a rejected file is quarantined with a reason and never sent`() async throws {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.route.validate = Validation(maxSize: 3)
        try await scene.run { stage in
            let job = try await stage.process("a", as: .rejected)
            #expect(job.deliveries.isEmpty)
            #expect(isThere(stage.root.pushing(".inlet/failed/a.reason.json")))
            #expect(scene.here.record.orders.isEmpty)
        }
    }

    @Test func `a failed file stays where its route does not ask for quarantine`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        scene.here.always(.fail(.hopeless))
        try await scene.run { stage in
            let file = try await stage.process("a", as: .failed).file.fullPath
            #expect(isThere(file))
        }
    }

    @Test func `a file that is open for writing after its delivery is kept until it is let go, and never sent twice`()
        async throws
    {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            let file = try await stage.start("a", "first")
            try await whileWriting(file) {
                gate.open()
                let job = try await stage.job("a", "waiting") {
                    $0.file.disposition?.hasPrefix("waiting: open for writing") == true
                }
                #expect(job.file.state == .delivered)
                #expect(job.file.finishedAt == nil)
                #expect(try text(file) == "first")
                // Not after half a minute, but at the finisher's next turn, which another file brings.
                try await stage.journal.postponeFinish(job.file.id, until: .now, note: "looked at next")
            }
            try scene.drop("b")
            try await stage.finished("a", .delivered)
            #expect(!isThere(file))
            #expect(scene.here.record.stored.keys.sorted() == ["a", "b"])
            #expect(scene.here.record.orders.map(\.key).count { $0.hasPrefix("a") } == 1)
        }
    }

    @Test func `what is edited while it waits for its end, with size and time put back, is sent before it is deleted`()
        async throws
    {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        let (first, second) = (Gate(), Gate())
        scene.here.script("a", .hold(first, .prove))
        scene.here.script("a_2", .hold(second, .prove))
        try await scene.run { stage in
            let draft = try scene.directory.write(Array("first".utf8), to: "draft")
            try setTime(draft)
            let file = stage.root.appending("a")
            try move(draft, to: file)
            try await eventually("it is on its way") { scene.here.record.running == 1 }
            var job: Job?
            try await whileWriting(file) {
                first.open()
                job = try await stage.job("a", "waiting") {
                    $0.file.disposition?.hasPrefix("waiting: open for writing") == true
                }
                try edit(file, "FIRST")
            }
            try await eventually("what it is now is on its way") {
                scene.here.record.orders.map(\.key) == ["a", "a_2"]
            }
            let old = try #require(job).file.id
            // Not after half a minute, but at the finisher's next turn, which another file brings.
            try await stage.journal.postponeFinish(old, until: .now, note: "looked at next")
            try await stage.process("b")
            try await eventually("it was looked at") {
                try await stage.journal.job(old)?.file.disposition != "looked at next"
            }
            #expect(try text(file) == "FIRST")
            second.open()
            try await stage.finished("a")
            #expect(!isThere(file))
            #expect(scene.here.record.stored["a_2"] == Array("FIRST".utf8))
        }
    }

    @Test func `a file that is opened after it was renamed away gets its name back and waits`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("a", "first")
            let job = try await stage.finished("a")
            let hidden = FinishFolders(root: stage.root, settings: nil).privateFile(job.file)
            try move(file, to: hidden)
            var row = job
            row.file.intent = try FinishIntent(action: .delete, privateFile: hidden, target: nil).note
            let pool = BlockingPool(name: "test", threads: 1)
            let begun = DisposalRunner(
                journal: stage.journal, places: FinishFolders(root: stage.root, settings: nil), job: row, hashing: pool,
                roots: RootRegistry(), prove: { _ in .unproved("nobody is asked here") })
            try await whileWriting(hidden) {
                var runner = begun
                guard case .wait(_, let note) = try await runner.run() else {
                    throw Unexpected(description: "it did not wait")
                }
                #expect(note.hasPrefix("waiting: open for writing"))
            }
            #expect(try text(file) == "first")
            #expect(!isThere(hidden))
            // Where another file has the name by now, it waits where it is.
            try move(file, to: hidden)
            try scene.drop("a", "another")
            try await whileWriting(hidden) {
                var runner = begun
                guard case .wait = try await runner.run() else { throw Unexpected(description: "it did not wait") }
            }
            #expect(try text(file) == "another")
            #expect(try text(hidden) == "first")
        }
    }

    @Test func `the pause between tries to archive grows with the time already spent, up to an hour`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.drop("a")
            let file = try await stage.finished("a").file
            let ended = try #require(file.endedAt)
            for (spent, pause) in [(0, 60), (59, 60), (300, 300), (3600, 3600), (90_000, 3600)] {
                #expect(FinishingStage.pause(file, at: ended + .seconds(spent)) == .seconds(pause))
            }
        }
    }

    @Test func `a file that changed after its delivery is put back and delivered anew`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            try await stage.start("a", "first")
            // A new file under the old name: what the transfer has open is the first one.
            let new = try scene.directory.write(Array("second one".utf8), to: "new")
            try remove(stage.root.appending("a"))
            try move(new, to: stage.root.appending("a"))
            gate.open()
            try await stage.finished("a", .superseded)
            try await stage.finished("a", .delivered)
            #expect(scene.here.record.stored == ["a": Array("first".utf8), "a_2": Array("second one".utf8)])
        }
    }

    @Test func `an archive that cannot be written puts one file off, says so, and others go on`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .archive
        try scene.drop(".inlet/done/blocked", "a file where a folder should be")
        try await scene.run { stage in
            let file = try scene.drop("blocked/a")
            try await eventually("it is said") { stage.events.count("job.disposition_failed") == 1 }
            try await stage.process("free/b")
            let job = try await stage.job("blocked/a")
            #expect(job.file.state == .delivered && job.file.finishedAt == nil)
            let why = try #require(job.file.disposition)
            #expect(why.hasPrefix("waiting: could not be put away: "))
            let stuck = try await stage.journal.stuck()
            #expect(stuck?.files == 1 && stuck.map { Disposition.stuck($0.reason) } == why)
            #expect(
                isThere(file) || isThere(file.removingLastComponent().appending(".inlet-finishing-\(job.file.id).tmp")))
            #expect(scene.here.record.orders.count == 2)
        }
    }

    @Test func `every end has a receipt that is one JSON line`() async throws {
        let scene = try Scene()
        scene.here.script("b", .fail(.hopeless))
        try await scene.run { stage in
            try scene.drop("a")
            try scene.drop("b")
            try await stage.finished("a")
            try await stage.finished("b", .failed)
            let receipts = try await stage.journal.receipts(limit: 9)
            #expect(receipts.count == 2)
            for receipt in receipts {
                let object = try JSONSerialization.jsonObject(with: Data(receipt)) as? [String: Any]
                #expect(object?["state"] is String && object?["deliveries"] is [Any])
                #expect(!receipt.contains(UInt8(ascii: "\n")))
            }
        }
    }
}

/// Files that are not there any more, destinations that are silent, and taking back from several.
@Suite struct ConcludingTests {
    @Test(arguments: [true, false]) func `a file whose bytes have all left is delivered although it is gone`(
        _ isRootAway: Bool
    ) async throws {
        let scene = try Scene()
        scene.here.haveAll()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            let file = try scene.drop("a")
            try await stage.job("a")
            if isRootAway {
                try move(stage.root, to: scene.directory.path.appending("away"))
            } else {
                try remove(file)
            }
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.job("a", "delivered") { $0.deliveries[0].state == .delivered }
            #expect(job.deliveries[0].proof?.key == "a")
            #expect(scene.here.record.concluded.map(\.key) == ["a"] && scene.here.record.orders.isEmpty)
            #expect(scene.here.record.abandoned.isEmpty)
        }
    }

    @Test func `a delivery that waits in silence counts as life`() async throws {
        let heartbeat = Heartbeat(roots: [])
        let attempt = Attempt(
            checkpoint: CheckpointLog(
                entries: [:], write: { _ throws(DeliveryError) in }, replace: { _ throws(DeliveryError) in }),
            isStopping: { false })
        let ref = AgentEvent.JobRef(job: 1, delivery: 1, path: "/drop/a", route: "all", destination: "here")
        let log = try EventLog(nil)
        var last: [Heartbeat.Part: Int] = [:]
        heartbeat.beat(.journal)
        #expect(!heartbeat.haveAllPassed(since: &last))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await attempt.sayProgress(of: ref, size: 1, to: log, heartbeat, every: .milliseconds(1)) }
            defer { group.cancelAll() }
            try await eventually("it beats") { heartbeat.haveAllPassed(since: &last) }
        }
        #expect(attempt.bytesSent == 0)
    }

    @Test func `taking back goes on where one destination fails, and does not ask twice`() async throws {
        var scene = try Scene()
        let (outages, tokenHere, tokenThere) = (Count(), Count(), Count())
        for count in [outages, tokenHere, tokenThere] { count.add() }
        @Sendable func delete(_ token: Count, at name: String) throws(DeliveryError) -> String {
            if token.take() { return "\(name) is deleted" }
            throw DeliveryError(.giveUp, .notFound, "no token for \(name)")
        }
        scene.destinations[0].undo = { _ throws(DeliveryError) in
            if outages.take() { throw .outage }
            return try delete(tokenHere, at: "here")
        }
        var there = Destination.scripted("there", ScriptedPipeline())
        there.undo = { _ throws(DeliveryError) in try delete(tokenThere, at: "there") }
        scene.destinations.append(there)
        scene.route.to = ["here", "there"]
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a").file.id
            let commands = stage.agent.control
            let error = await #expect(throws: DeliveryError.self) { try await commands.undo(job, type: "scripted") }
            #expect(error?.verdict == .outage(after: nil))
            #expect(error?.reason == "there is deleted\n\(DeliveryError.outage.reason)")
            #expect(try await commands.undo(job, type: "scripted") == ["here is deleted"])
            let again = await #expect(throws: DeliveryError.self) { try await commands.undo(job, type: "scripted") }
            #expect(again?.code == .notFound)
        }
    }
}
