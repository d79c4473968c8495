import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Units that end with a checksum list.
@Suite struct ManifestTests {
    private let pool = BlockingPool(name: "manifests", threads: 2)

    /// A scene whose units go to a folder, with a list in `format`.
    private func scene(_ format: ManifestRule.Format, hash: Digest.Algorithm = .xxh64) throws -> Scene {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        let values: [String: ConfigValue] = ["path": .string(library.string)]
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        let settings = FolderSettings(section)
        var folder = Destination(
            name: "here", type: "folder", pipeline: FolderPipeline(settings: settings, pool: pool),
            smallLimit: 1 << 20, connections: 4, maxInFlight: nil)
        folder.folder = library
        scene.destinations = [folder]
        scene.route.match.paths = [try GlobPattern("*/**")]
        scene.route.key = try KeyTemplate("cards/{dir}/{name}")
        scene.route.unit = .folder
        scene.route.completion = .marker
        scene.route.manifest = ManifestRule(format: format, algorithm: hash)
        return scene
    }

    private func offload(_ scene: Scene, _ unit: String = "A001", _ names: [String] = ["a.mov", "raw/b & c.mov"]) throws
    {
        for name in names { try scene.drop(FilePath("\(unit)/\(name)"), "content of \(name)") }
        try scene.drop(FilePath("\(unit)/DONE"), "")
    }

    private func written(_ stage: Stage, _ count: Int) async throws {
        try await eventually("\(count) lists are there, and none is owed") {
            let isOwedNothing = try await stage.isOwedNothing()
            return isOwedNothing && stage.events.count("manifest.written") == count
        }
    }

    /// Whether each file that a list names has the digest that it says; the number of files.
    private func verified(_ list: FilePath, in root: FilePath, _ algorithm: Digest.Algorithm) async throws -> Int {
        let document = try XMLReader.read(try DurableFile.read(list, limit: 1 << 20))
        let isClassic = document.all("hash").count > 0
        let hashes = isClassic ? document.all("hash") : document.children.flatMap { $0.all("hash") }
        for hash in hashes {
            let path = try #require(hash.text(of: isClassic ? "file" : "path"))
            let name = isClassic && algorithm == .xxh64 ? "xxhash64be" : algorithm.rawValue
            let source = try SourceFile(opening: root.pushing(FilePath(path)))
            let digests = try await Fingerprint.digests([algorithm], of: source, on: pool)
            #expect(digests.map(\.hex) == [hash.text(of: name)], "\(path)")
        }
        return hashes.count
    }

    @Test(arguments: [Digest.Algorithm.xxh64, .md5, .sha1])
    func `a folder of one unit gets a history, and the state directory a list`(_ hash: Digest.Algorithm) async throws {
        let scene = try scene(.ascmhl, hash: hash)
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 2)
            let target = scene.directory.path.pushing("library/cards/A001")
            #expect(try names(in: target) == ["a.mov", "ascmhl", "raw"])
            let generations = try names(in: target.appending("ascmhl")).filter { $0.hasSuffix(".mhl") }
            #expect(generations.count == 1 && generations[0].hasPrefix("0001_A001_"))
            let list = target.appending("ascmhl").appending(generations[0])
            #expect(try await verified(list, in: target, hash) == 2)
            let home = scene.directory.path.pushing("state/manifests/1-A001")
            let own = home.appending(try #require(try names(in: home).first))
            // The same paths below the source; the marker is not among them.
            #expect(try await verified(own, in: stage.root.appending("A001"), hash) == 2)
            #expect(try text(own).contains("<pattern>**/DONE</pattern>"))
            // Nothing of it is ever written to the card.
            #expect(try names(in: stage.root.appending("A001")) == ["DONE", "a.mov", "raw"])
        }
    }

    @Test func `a classic list lies in the folder that it is about`() async throws {
        let scene = try scene(.mhl)
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 2)
            let target = scene.directory.path.pushing("library/cards/A001")
            let list = try #require(try names(in: target).first { $0.hasSuffix(".mhl") })
            #expect(list.hasPrefix("A001_") && list.hasSuffix("Z.mhl"))
            #expect(try await verified(target.appending(list), in: target, .xxh64) == 2)
        }
    }

    @Test func `at a destination's top there is a list of the names that files have there`() async throws {
        var scene = try scene(.ascmhl)
        scene.route.key = try KeyTemplate("{epoch_ms}_{name}")
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 2)
            let library = scene.directory.path.appending("library")
            let there = try names(in: library)
            let list = try #require(there.first { $0.hasPrefix("A001_") && $0.hasSuffix(".mhl") })
            #expect(there.count == 3)
            #expect(try await verified(library.appending(list), in: library, .xxh64) == 2)
        }
    }

    @Test func `a unit that ends again adds a generation to its history`() async throws {
        let scene = try scene(.ascmhl)
        let blocked = try scene.directory.write("other".utf8, to: "library/cards/A001/b.mov")
        try await scene.run { stage in
            try offload(scene, "A001", ["a.mov", "b.mov", "c.mov"])
            try await written(stage, 2)
            let failed = try await stage.finished("A001/b.mov", .failed)
            try DurableFile.remove(blocked)
            #expect(try await stage.agent.control.act(.retry, on: failed.file.id) == .done)
            try await written(stage, 4)
            let target = scene.directory.path.pushing("library/cards/A001")
            let generations = try names(in: target.appending("ascmhl")).filter { $0.hasSuffix(".mhl") }
            #expect(generations.map { $0.prefix(5) } == ["0001_", "0002_"])
            let second = target.appending("ascmhl").appending(generations[1])
            #expect(try await verified(second, in: target, .xxh64) == 3)
            #expect(
                try text(second).matches(of: /action="(\w+)"/).map { $0.1 } == ["verified", "original", "verified"])
        }
    }

    @Test func `in a folder of several units each gets a list of its own`() async throws {
        var scene = try scene(.ascmhl)
        scene.route.key = try KeyTemplate("all/{name}")
        try await scene.run { stage in
            try offload(scene, "A001", ["a.mov"])
            try await written(stage, 2)
            try offload(scene, "A002", ["b.mov"])
            try await written(stage, 4)
            let target = scene.directory.path.pushing("library/all")
            // The first had the folder for itself.
            let there = try names(in: target)
            #expect(there.count == 4 && there.contains("ascmhl") && there.contains { $0.hasPrefix("all_") })
            #expect(try names(in: target.appending("ascmhl")).count == 2)
        }
    }

    @Test func `in a watched folder no list is written, and that is said`() async throws {
        var scene = try scene(.ascmhl)
        scene.watch.append(
            WatchSettings(path: scene.directory.path.appending("library"), settle: .zero, rescan: nil))
        scene.route.match.paths = [try GlobPattern("A00*/**")]
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 1)
            #expect(try names(in: scene.directory.path.pushing("library/cards/A001")) == ["a.mov", "raw"])
            let skipped = stage.events.all.map(\.line).filter { $0.name == "manifest.skipped" }
            #expect(skipped.count == 1)
            #expect(skipped.first?.fields.first { $0.0 == "destination" }?.1 == .text("here"))
        }
    }

    @Test func `what cannot be written is said once, kept over a restart, and then written once`() async throws {
        let scene = try scene(.ascmhl)
        let obstacle = try scene.directory.write([], to: "state/manifests")
        try await scene.run { stage in
            try offload(scene)
            try await eventually("it is said") { stage.events.count("manifest.failed") == 1 }
            try await eventually("it is put off") { try await stage.journal.nextManifest(at: .now) == nil }
            let later = try #require(try await stage.journal.manifestDue())
            let order = try #require(try await stage.journal.nextManifest(at: later))
            #expect(order.attempts == 1 && order.reason?.contains("manifests") == true)
            // What could be written is there all the same.
            try await eventually("it is said") { stage.events.count("manifest.written") == 1 }
            try await stage.journal.manifestFailed(order, reason: "tried at once", until: .now)
        }
        try DurableFile.remove(obstacle)
        try await scene.run { stage in
            try await written(stage, 1)
            #expect(try names(in: scene.directory.path.pushing("state/manifests/1-A001")).count == 1)
            #expect(try names(in: scene.directory.path.pushing("library/cards/A001/ascmhl")).count == 2)
        }
    }

    @Test func `an end that is owed its list at the start gets it, once`() async throws {
        let scene = try scene(.ascmhl)
        // As after a crash: the batch has ended, and nobody has written.
        let journal = try Journal(path: scene.directory.path.pushing("state/journal.sqlite"), now: .now)
        let root = try scene.directory.makeDirectory("library/cards/A001")
        try scene.directory.write("x".utf8, to: "library/cards/A001/a")
        let digest = try #require(Digest(.xxh64, hex: "5c80c09683041123"))
        var plan = Plan(
            route: "all", category: "other", key: "cards/A001/a", mediaType: "text/plain", destinations: ["here"])
        (plan.manifest, plan.digests) = (scene.route.manifest, [digest])
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1)
        var admission = FileAdmission(
            Arrival(root: scene.root, path: "A001/a", identity: identity), plan: plan, lanes: ["here": .small],
            uptimes: [:])
        admission.unit = "A001"
        _ = try await journal.admit(admission, at: .now)
        _ = try await journal.closeUnit(
            "A001", root: scene.root, routes: ["all"], marker: nil, uptimes: [:], at: .now)
        let room = ClaimRoom(destination: "here", limits: [.small: 1])
        let ending: EndingRule = { _ in Ending(disposition: "kept", receipt: Array("{}".utf8)) }
        _ = try await journal.withClaim(.small, rooms: [room], clock: { .now }, ending: ending) { _ in
            (.delivered(Proof(key: "cards/A001/a", size: 1, method: .size)), ())
        }
        journal.close()
        for expected in [2, 0] {
            try await scene.run { stage in try await written(stage, expected) }
            let lists = try names(in: root.appending("ascmhl"))
            #expect(lists.count == 2)
            #expect(try await verified(root.appending("ascmhl").appending(lists[0]), in: root, .xxh64) == 1)
        }
    }

    @Test func `an object store gets the list as an object beside the others`() async throws {
        var scene = try scene(.mhl)
        scene.destinations = [.scripted("here", scene.here)]
        try await scene.run { stage in
            try offload(scene)
            try await eventually("the list is delivered") { scene.here.record.stored.count == 3 }
            let keys = scene.here.record.stored.keys.sorted()
            #expect(keys[0].hasPrefix("cards/A001/A001_") && keys[0].hasSuffix("Z.mhl"))
            #expect(Array(keys.dropFirst()) == ["cards/A001/a.mov", "cards/A001/raw/b_&_c.mov"])
            let content = String(decoding: try #require(scene.here.record.stored[keys[0]]), as: UTF8.self)
            #expect(content.contains("<file>raw/b_&amp;_c.mov</file>"))
            try await eventually("nothing is owed") { try await stage.isOwedNothing() }
        }
        // It has been sent for good.
        try await scene.run { stage in
            try scene.drop("A002/x", "x")
            try await stage.job("A002/x")
            #expect(scene.here.record.orders.count == 3)
        }
    }
}

extension Stage {
    fileprivate func isOwedNothing() async throws -> Bool {
        let owed = try await journal.manifestDue()
        return owed == nil
    }
}
