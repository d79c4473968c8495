import Foundation
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// The process dies where it hurts most; after a restart nothing is lost and nothing was done twice.
@Suite struct CrashTests {
    /// One machine for each kind, and a new file for each death: what was there before must stay as it is.
    @Test(.timeLimit(.minutes(15)), arguments: CrashKind.allCases)
    func `a crash at any point leaves one object, one receipt, and the source as its route asks`(_ kind: CrashKind)
        async throws
    {
        try await kind.withScene { scene in
            let place = scene.place
            let files = kind.points.enumerated().map { CrashFile(kind, $0, $1) }
            for file in files {
                try place.put(file.name, file.content)
                try await place.die(at: file.point)
                let next = try await place.run()
                if !file.wasFinished {
                    try await next.line("job.finished") { $0["path"]?.hasSuffix("/\(file.name.string)") ?? false }
                }
                // The next file's process finds what a power cut leaves of an idle one.
                try await next.kill()
            }
            let last = try await place.run()
            #expect(try await last.stop() == .code(0))
            try await Aftermath(place).check(files)
            #expect(try scene.leftovers().count <= kind.mostOrphans)
            let stored = try scene.stored()
            #expect(stored.count == files.count)
            for file in files {
                let content = Checksum.sha256(file.content)
                #expect(stored.count { $0 == content } == 1, "\(file.point)")
            }
            try scene.check(files.count)
        }
    }

    @Test(arguments: ["intentWritten", "renamedAway", "moveNoted", "moved", "disposed"])
    func `after a crash the receipt still names the archived file, beside an older one of that name`(_ point: String)
        async throws
    {
        let place = try Place(route: ["on_success: archive"])
        try place.folder.write(bytes(5), to: "drop/.inlet/done/clip.mov")
        try place.put("clip.mov", bytes(10))
        try await place.die(at: point)
        try await place.runUntil("job.finished")
        let archive = place.drop.appending(".inlet").appending("done")
        #expect(try place.content(archive.appending("clip.mov")) == bytes(5))
        #expect(try place.content(archive.appending("clip_2.mov")) == bytes(10))
        let receipt = try #require(try await place.inlet("receipts").objects().first)
        #expect(receipt["disposition"] as? String == "archived: \(archive.appending("clip_2.mov").string)")
    }
}

extension Place {
    /// Runs an agent, which must pass `point` and so end by SIGKILL.
    func die(at point: String, launcher: [String] = []) async throws {
        let killed = try start("run", environment: ["INLET_FAILPOINT": point], launcher: launcher)
        let ending = try await killed.ending()
        try #require(ending == .signal(SIGKILL), "\(point): \(ending)\n\(killed.errors.suffix(2000))")
    }
}

/// What must hold once everything has ended, however often the process died.
struct Aftermath {
    let place: Place

    init(_ place: Place) { self.place = place }

    /// One receipt for each file, each source where its route wants it, and nobody waits.
    func check(_ files: [CrashFile]) async throws {
        let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
        #expect(receipts.count == files.count)
        #expect(receipts.allSatisfy { $0["state"] as? String == "delivered" }, "\(receipts)")
        let words = ["keep": "kept", "archive": "archived", "delete": "deleted"]
        for file in files {
            let own = receipts.filter { ($0["path"] as? String)?.hasSuffix("/\(file.name.string)") ?? false }
            #expect(own.count == 1, "\(file.point)")
            let disposition = own.first?["disposition"] as? String ?? ""
            #expect(disposition.hasPrefix(words[file.disposition] ?? "?"), "\(file.point): \(disposition)")
            try checkSource(file.name, file.content, file.disposition)
        }
        let balance = try await place.balance()
        #expect(balance["delivered"] == files.count && balance["pending"] == 0, "\(balance)")
        #expect(balance.values.reduce(0, +) == files.count, "\(balance)")
    }

    /// The source is where its route wants it, and nowhere else.
    func checkSource(_ name: FilePath, _ content: Data, _ disposition: String) throws {
        let source = place.drop.pushing(name)
        let archived = place.drop.appending(".inlet").appending("done").pushing(name)
        #expect(place.exists(source) == (disposition == "keep"))
        #expect(place.exists(archived) == (disposition == "archive"))
        switch disposition {
        case "keep": #expect(try place.content(source) == content)
        case "archive": #expect(try place.content(archived) == content)
        default: break
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: source.removingLastComponent().string)
        #expect(!names.contains { $0.hasPrefix(".inlet-") }, "\(names)")
    }
}

/// The process dies among files that belong together or go to several places, and where a file goes another way than the
/// usual; after a restart nothing is lost and nothing was done twice.
@Suite struct CrashSetTests {
    private static func configuration(_ route: String, destinations: String = "") -> String {
        """
        state_dir: state
        log: { level: debug }
        destinations:
          store: { type: folder, path: library }
          \(destinations)
        watch:
          - { path: drop, settle: 0s, archive_dir: .inlet/done }
        routes:
          - { name: all, key: "{dir}/{name}", \(route) }

        """
    }

    /// Puts files, dies at a point and starts again, once for each of them; at the end every file has one receipt, its place
    /// in the library and in the archive, and there is nothing else.
    ///
    /// - Parameters:
    ///   - companions: files, in folders of their round, that are put in this order.
    ///   - unsent: of these the ones that are not sent, but archived.
    private func dieAndGoOn(
        _ place: Place, at points: CrashPoints, with companions: [String], unsent: Set<String> = []
    ) async throws {
        var expected: [FilePath: Data] = [:]
        let archive = place.drop.appending(".inlet").appending("done")
        for (round, point) in points.list.enumerated() {
            let names = companions.map { FilePath("gigs/round\(round)/\($0)") }
            for (index, name) in names.enumerated() {
                let content = bytes(500 + 10 * round + index, seed: UInt64(round * 10 + index + 1))
                try place.put(name, content)
                expected[name] = content
            }
            try await place.die(at: point)
            let next = try await place.run()
            try await next.wait("the archive after \(point)") {
                names.allSatisfy { place.exists(archive.pushing($0)) }
            }
            try await next.kill()
        }
        let last = try await place.run()
        try await last.wait("every receipt") {
            try await place.inlet("receipts", "--limit", "1000").objects().count >= expected.count
        }
        #expect(try await last.stop() == .code(0))
        let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
        #expect(receipts.count == expected.count)
        #expect(Set(receipts.compactMap { $0["path"] as? String }).count == expected.count)
        let sent = expected.filter { !unsent.contains($0.key.lastComponent?.string ?? "") }
        #expect(Place.files(below: place.library) == Self.byText(sent))
        #expect(Place.files(below: archive) == Self.byText(expected))
        #expect(Place.files(below: place.drop.appending("gigs")) == [:])
        let balance = try await place.balance()
        #expect(balance["pending"] == 0 && balance.values.reduce(0, +) == expected.count, "\(balance)")
    }

    /// Puts a file of its own, dies and goes on until it has ended, once for each of the points. - Returns: all files.
    private func dieAndGoOn(
        _ place: Place, at points: CrashPoints, launcher: [String] = []
    ) async throws -> [String: Data] {
        var files: [String: Data] = [:]
        for (round, point) in points.list.enumerated() {
            let (name, content) = ("clip\(round).mp4", bytes(3000 + round))
            files[name] = content
            try place.put(FilePath(name), content)
            try await place.die(at: point, launcher: launcher)
            let next = try await place.run(launcher: launcher)
            try await next.line("job.finished") { $0.isAbout(name) }
            try await next.kill()
        }
        return files
    }

    private static func byText(_ files: [FilePath: Data]) -> [String: Data] {
        Dictionary(uniqueKeysWithValues: files.map { ($0.key.string, $0.value) })
    }

    @Test(.timeLimit(.minutes(15))) func `a file and its sidecar arrive once, whatever the process was doing`()
        async throws
    {
        let place = try Place()
        try place.configure(
            text: Self.configuration(
                "match: { path: \"gigs/**\", extensions: [mp4] }, to: store, on_success: archive, "
                    + "sidecars: { extensions: [xmp], wait: 1h }"))
        try await dieAndGoOn(place, at: CrashPoints.sidecar, with: ["clip.xmp", "clip.mp4"])
    }

    @Test(.timeLimit(.minutes(15))) func `a sidecar that comes after its file follows it once`() async throws {
        let place = try Place()
        try place.configure(
            text: Self.configuration(
                "match: { extensions: [mp4] }, to: store, on_success: archive, "
                    + "sidecars: { extensions: [xmp], wait: 1s }"))
        let archive = place.drop.appending(".inlet").appending("done")
        var expected: [String: Data] = [:]
        for (round, point) in CrashPoints.lateSidecar.list.enumerated() {
            let (main, late) = ("clip\(round).mp4", "clip\(round).xmp")
            (expected[main], expected[late]) = (bytes(500 + round), bytes(50 + round, seed: 3))
            try place.put(FilePath(main), bytes(500 + round))
            try await place.runUntil("job.finished") { $0.isAbout(main) }
            try place.put(FilePath(late), bytes(50 + round, seed: 3))
            try await place.die(at: point)
            let next = try await place.run()
            try await next.wait("the archive after \(point)") { place.exists(archive.appending(late)) }
            #expect(try await next.stop() == .code(0))
        }
        let last = try await place.run()
        try await last.wait("every receipt") {
            try await place.inlet("receipts", "--limit", "100").objects().count >= expected.count
        }
        #expect(try await last.stop() == .code(0))
        #expect(Place.files(below: place.library) == expected)
        #expect(Place.files(below: archive) == expected)
        #expect(try await place.balance()["delivered"] == expected.count)
    }

    @Test(.timeLimit(.minutes(15))) func `a unit is closed once and sent once, whatever the process was doing`()
        async throws
    {
        let place = try Place()
        try place.configure(
            text: Self.configuration(
                "match: { path: \"gigs/**\", extensions: [mp4] }, to: store, on_success: archive, unit: folder, "
                    + "completion: marker"))
        try await dieAndGoOn(place, at: CrashPoints.unit, with: ["a.mp4", "b.mp4", "DONE"], unsent: ["DONE"])
    }

    @Test(.timeLimit(.minutes(15))) func `two destinations get one object each, and the source waits for both`()
        async throws
    {
        let place = try Place()
        let store = place.folder.path.appending("store")
        try await withSandbox(store) { sandbox, port in
            let remote =
                "remote: { type: r2, api: \"http://127.0.0.1:\(port)\", dialect: v1, api_key: \(ConfigText.apiKey) }"
            try place.configure(
                text: Self.configuration("to: [store, remote], on_success: archive", destinations: remote))
            try await dieAndGoOn(place, at: CrashPoints.places, with: ["clip.mp4"])
            let objects = sandbox.objects()
            #expect(objects.count == CrashPoints.places.list.count)
            for object in objects {
                #expect(try place.content(object.path) == place.content(place.library.pushing(FilePath(object.key))))
            }
        }
    }

    @Test(.timeLimit(.minutes(15))) func `what is rejected lies in quarantine once, with its reason`() async throws {
        let place = try Place()
        try place.configure(
            text: Self.configuration("to: store, validate: { max_size: 10 }, on_failure: quarantine"))
        let failed = place.drop.appending(".inlet").appending("failed")
        let points = CrashPoints.rejected.list
        for (round, point) in points.enumerated() {
            let name = FilePath("clip\(round).mp4")
            try place.put(name, bytes(100 + round))
            try await place.die(at: point)
            let next = try await place.run()
            if point != "finished" { try await next.line("job.finished") { $0.isAbout(name.string) } }
            try await next.kill()
            #expect(try place.content(failed.pushing(name)) == bytes(100 + round), "\(point)")
            let reason = try place.content(failed.appending("clip\(round).mp4.reason.json"))
            let object = try #require(try JSONSerialization.jsonObject(with: reason) as? [String: Any])
            #expect(object["state"] as? String == "rejected", "\(point)")
        }
        #expect(Place.files(below: failed).count == 2 * points.count)
        #expect(Place.files(below: place.drop).count == 2 * points.count)
        let receipts = try await place.inlet("receipts", "--limit", "100").objects()
        #expect(receipts.count == points.count)
        #expect(try await place.balance()["rejected"] == points.count)
    }

    @Test(.enabled(if: CrashSetTests.isElsewhere("/dev/shm")), .timeLimit(.minutes(15)))
    func `an archive on another file system gets each file once`() async throws {
        let place = try Place()
        let memory = try TemporaryDirectory.inMemory()
        defer { withExtendedLifetime(memory) {} }
        let shelf = memory.path.appending("shelf")
        let text = Self.configuration("to: store, on_success: archive")
        try place.configure(text: text.replacing("archive_dir: .inlet/done", with: "archive_dir: \(shelf.string)"))
        let expected = try await dieAndGoOn(place, at: CrashPoints.otherDisk)
        #expect(Place.files(below: shelf) == expected)
        #expect(Place.files(below: place.library) == expected)
        #expect(Place.files(below: place.drop) == [:])
        #expect(try await place.balance()["delivered"] == expected.count)
    }

    private static func isElsewhere(_ path: String) -> Bool {
        func device(_ path: String) -> NSNumber? {
            (try? FileManager.default.attributesOfItem(atPath: path))?[.systemNumber] as? NSNumber
        }
        return device(path) != nil && device(path) != device(NSTemporaryDirectory())
    }

    @Test(.enabled(if: Nobody.isAvailable), .timeLimit(.minutes(15)))
    func `a file that is held, because its writers cannot be known, is archived once`() async throws {
        let place = try Place()
        let text = Self.configuration("to: store, on_success: archive")
        try place.configure(text: text.replacing("settle: 0s,", with: "settle: 0s, hold: 1s,"))
        try Nobody.own(place.folder.path)
        let expected = try await dieAndGoOn(place, at: CrashPoints.held, launcher: Nobody.launcher)
        #expect(Place.files(below: place.drop.appending(".inlet").appending("done")) == expected)
        #expect(Place.files(below: place.drop).count == expected.count)
        #expect(Place.files(below: place.library) == expected)
    }

    @Test(arguments: CrashPoints.leftover.list)
    func `an upload that nobody wants is gone after a crash in the midst of its removal`(_ point: String) async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            try place.put("unwanted.bin", bytes((5 << 20) + 1))
            try await place.die(at: "partUploaded")
            #expect(sandbox.openUploads().count == 1)
            try await place.inlet("queue", "cancel", "1", code: 0)
            try await place.die(at: point)
            #expect(sandbox.openUploads().isEmpty)
            let next = try await place.run()
            if point == "abandoned" { try await next.line("transfer.aborted") }
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.objects().isEmpty)
            #expect(try await place.balance()["cancelled"] == 1)
            #expect(place.exists(place.drop.appending("unwanted.bin")))
        }
    }
}
