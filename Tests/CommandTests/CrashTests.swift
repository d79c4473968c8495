import Foundation
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// The process dies where it hurts most; after a restart nothing is lost and nothing was done twice.
@Suite struct CrashTests {
    /// One machine for each kind, and a new file for each death: what was there before must stay as it is.
    @Test(.timeLimit(.minutes(8)), arguments: CrashKind.allCases)
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
        let next = try await place.run()
        try await next.line("job.finished")
        #expect(try await next.stop() == .code(0))
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
