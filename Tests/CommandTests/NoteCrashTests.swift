import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// The process dies at the notes that a delivery leaves when a server refuses, loses or locks something; after a restart
/// nothing is lost and nothing was done twice.
@Suite(.serialized, .timeLimit(.minutes(15))) struct NoteCrashTests {
    private static let chunk = 5 << 20

    @Test(arguments: [CrashPoints.version, CrashPoints.fail])
    func `a key of S3 that may be taken gets one object, and another's is left alone`(_ rule: CrashPoints) async throws
    {
        try await withS3("if_exists: \(rule)", route: ["on_success: delete"]) { place, sandbox in
            let points = rule.list
            let old = rule == .version ? try await occupy(points.count, place) : [:]
            var expected = old
            for (round, point) in points.enumerated() {
                let (name, content) = ("clip\(round).bin", bytes(20_000 + round))
                try place.put(FilePath(name), content)
                expected[rule == .version ? "clip\(round)_2.bin" : name] = content
                try await place.die(at: point)
                let next = try await place.run()
                if point != "finished" { try await next.line("job.finished") { $0.isAbout(name) } }
                try await next.kill()
            }
            let objects = sandbox.objects()
            #expect(objects.count == expected.count)
            for object in objects { #expect(try place.content(object.path) == expected[object.key], "\(object.key)") }
            let receipts = try await place.inlet("receipts", "--limit", "100").objects()
            #expect(receipts.map { $0["state"] as? String } == points.map { _ in "delivered" })
            #expect(Place.files(below: place.drop) == [:])
        }
    }

    /// Puts objects under the keys of files to come, by a machine that then loses its journal. - Returns: them.
    private func occupy(_ count: Int, _ place: Place) async throws -> [String: Data] {
        let old = Dictionary(uniqueKeysWithValues: (0..<count).map { ("clip\($0).bin", bytes(300 + $0, seed: 2)) })
        for (name, content) in old { try place.put(FilePath(name), content) }
        try await place.runUntil("job.finished", number: count)
        try FileManager.default.removeItem(atPath: place.state.string)
        return old
    }

    @Test(arguments: CrashPoints.expiry.list)
    func `an upload whose URLs have expired is dropped and begun anew`(_ point: String) async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            sandbox.faults.add(Fault(.expiredURLs, at: .create))
            let content = bytes(Self.chunk + 1)
            try place.put("film.bin", content)
            try await place.die(at: point)
            try await place.runUntil("job.finished") { $0["state"] == "delivered" }
            #expect(sandbox.openUploads() == [])
            #expect(sandbox.objects().map(\.key) == ["film.bin"])
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
        }
    }

    // MARK: - GigHive

    /// Dies at `point` on the way to a GigHive server, and starts again; the file is filed once.
    private func film(
        at point: String, _ fault: GigHiveFault, transport: String, size: Int = chunk + 1,
        _ check: @Sendable @escaping (GigHiveSandbox) -> Void
    ) async throws {
        try await withGigHive("transport: \(transport)") { place, sandbox in
            sandbox.faults.add(fault)
            let content = bytes(size)
            try place.put("film.mov", content)
            try await place.die(at: point)
            try await place.runUntil("job.finished") { $0["state"] == "delivered" }
            #expect(sandbox.assets().map(\.entries.count) == [1])
            #expect(try place.content(#require(sandbox.assets().first).path) == content)
            check(sandbox)
        }
    }

    @Test(arguments: CrashPoints.putOff.list)
    func `a film that waits to be filed is not sent again`(_ point: String) async throws {
        let reply = FaultReply.gigHive(500, error: "Server Error", message: "hook output has not been written")
        try await film(at: point, GigHiveFault(.reply(reply), at: .finalize), transport: "tus") { sandbox in
            #expect(sandbox.traffic.counts[.tusCreate] == 1 && sandbox.traffic.counts[.tusPatch] == 2)
            #expect(sandbox.openUploads() == [])
        }
    }

    @Test(arguments: CrashPoints.sentAgain.list)
    func `a film that the server says it lost is filed once`(_ point: String) async throws {
        let reply = FaultReply.gigHive(500, error: "Server Error", message: "Upload not found: no data")
        try await film(at: point, GigHiveFault(.reply(reply), at: .finalize, times: 2), transport: "tus") { sandbox in
            // Before the note the server is asked again, and has it after all.
            #expect(sandbox.traffic.counts[.tusCreate] == (point == "noted:second" ? 2 : 1))
        }
    }

    @Test(arguments: CrashPoints.formTooLarge.list)
    func `once it is noted that a form is too large, none is sent again`(_ point: String) async throws {
        let fault = GigHiveFault(.status(413), at: .upload, times: nil)
        try await film(at: point, fault, transport: "auto", size: 100_000) { sandbox in
            #expect(sandbox.traffic.counts[.upload] == (point == "noted:transport" ? 1 : 2))
            #expect(sandbox.traffic.counts[.tusPatch] == 1 && sandbox.openUploads() == [])
        }
    }

    // MARK: - Roboscope

    private func finishMarkers(_ place: Place, _ sandbox: RoboscopeSandbox) async throws {
        let agent = try await place.run()
        try await agent.wait("the end") { sandbox.sessions().first?.status == "done" }
        #expect(try await agent.stop() == .code(0))
        sandbox.expectMarkers(150)
        let session = try #require(sandbox.sessions().first)
        #expect(sandbox.sessions().count == 1 && !sandbox.isLocked(session: session.id))
    }

    @Test(arguments: CrashPoints.markers.list)
    func `markers arrive once, and the lock that was noted is taken up again`(_ point: String) async throws {
        // Its clock stands still: a lock that nobody knows of would never end.
        let hours = Hours()
        try await withRoboscope(route: "unit: folder", clock: { hours.now }) { place, sandbox, _ in
            try place.putMarkers(150)
            try await place.die(at: point)
            if point == "noting:lock_token" { hours.advance() }
            try await finishMarkers(place, sandbox)
        }
    }

    @Test(arguments: CrashPoints.lockWait.list)
    func `a lock whose token died with the process is waited for`(_ point: String) async throws {
        let hours = Hours()
        try await withRoboscope(route: "unit: folder", clock: { hours.now }) { place, sandbox, _ in
            try place.putMarkers(150)
            try await place.die(at: "noting:lock_token")
            try await place.die(at: point)
            #expect(sandbox.markers().isEmpty)
            hours.advance()
            try await finishMarkers(place, sandbox)
        }
    }

    /// A clock that is moved by hand.
    private final class Hours: Sendable {
        private let time = Mutex(WallTime.now)

        var now: WallTime { time.withLock(\.self) }

        /// By more than a lock lives.
        func advance() { time.withLock { $0 = $0 + .seconds(60) } }
    }
}

/// The process dies while a program makes something of a file, and after; both arrive, once.
@Suite struct DeriveCrashTests {
    /// - Parameter script: run by sh with the original and the file to be made.
    private static func place(_ script: String) throws -> Place {
        let place = try Place()
        let file = try place.folder.write(script.utf8, to: "make.sh")
        try place.configure(
            text: """
                state_dir: state
                log: { level: debug }
                destinations:
                  store: { type: folder, path: library }
                watch:
                  - { path: drop, settle: 0s, archive_dir: .inlet/done }
                routes:
                  - name: all
                    key: "{dir}/{name}"
                    to: store
                    on_success: archive
                    derive:
                      - { name: copy, command: [sh, "\(file.string)", "{in}", "{out}"], suffix: .copy.txt }

                """)
        return place
    }

    /// Nothing is left over of what was made.
    private static func made(_ place: Place) -> [String] {
        Place.files(below: place.state.appending("derived")).keys.sorted()
    }

    @Test(.timeLimit(.minutes(15)))
    func `a file and what was made of it arrive once, whatever the process was doing`() async throws {
        let place = try Self.place("head -c 100 \"$1\" > \"$2\"\n")
        let archive = place.drop.appending(".inlet").appending("done")
        var (stored, archived): ([String: Data], [String: Data]) = ([:], [:])
        for (round, point) in CrashPoints.companion.list.enumerated() {
            let (name, content) = ("gigs/clip\(round).mp4", bytes(500 + round, seed: UInt64(round + 1)))
            (stored[name], stored[name + ".copy.txt"]) = (content, content.prefix(100))
            archived[name] = content
            try place.put(FilePath(name), content)
            try await place.die(at: point)
            let next = try await place.run()
            try await next.wait("both after \(point)") {
                place.exists(archive.pushing(FilePath(name)))
                    && place.exists(place.library.pushing(FilePath(name + ".copy.txt")))
            }
            try await next.kill()
        }
        let last = try await place.run()
        try await last.wait("every receipt") {
            try await place.inlet("receipts", "--limit", "1000").objects().count >= stored.count
        }
        try await last.wait("all that was made is removed") { Self.made(place).isEmpty }
        #expect(try await last.stop() == .code(0))
        #expect(Place.files(below: place.library) == stored)
        #expect(Place.files(below: archive) == archived)
        #expect(Place.files(below: place.drop.appending("gigs")) == [:])
        let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
        #expect(receipts.count == stored.count)
        #expect(receipts.count { $0["role"] as? String == "derived" } == archived.count)
        let balance = try await place.balance()
        #expect(balance["delivered"] == stored.count && balance["pending"] == 0, "\(balance)")
    }
}
