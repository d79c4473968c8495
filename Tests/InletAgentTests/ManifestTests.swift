import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import InletTransfer
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
        scene.destinations = [.folder("here", library)]
        scene.destinations[0].folder = library
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
            let digests = try await SourceDigests.digests([algorithm], of: source, on: pool)
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

    /// As a copy of another tool comes, whose history has hashes of another kind.
    @Test func `a history that comes with a unit goes on at the destination`() async throws {
        let scene = try scene(.ascmhl)
        let sum = try #require(SliceHasher.sums([.md5], of: Array("content of a.mov".utf8))[.md5])
        let list = Self.generation("<path size=\"16\">a.mov</path><md5 action=\"original\">\(sum.hex)</md5>")
        let name = "0001_A001_2026-11-20_080000Z.mhl"
        let link = (1, name, MediaHashList.c4(of: Array(list.utf8)))
        let chain = try #require(MediaHashList.chain(nil, adding: [link]))
        try scene.drop(FilePath("A001/ascmhl/\(name)"), list)
        try scene.drop("A001/ascmhl/ascmhl_chain.xml", String(decoding: chain, as: UTF8.self))
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 2)
            #expect(stage.events.count("manifest.standalone") == 0)
            let target = scene.directory.path.pushing("library/cards/A001")
            #expect(try names(in: target) == ["a.mov", "ascmhl", "raw"])
            let generations = try names(in: target.appending("ascmhl"))
            #expect(generations.map { $0.prefix(5) } == ["0001_", "0002_", "ascmh"])
            let second = target.appending("ascmhl").appending(generations[1])
            #expect(try await verified(second, in: target, .xxh64) == 2)
            #expect(
                try text(second).matches(of: /<(\w+) action="(\w+)"/).map { "\($0.1) \($0.2)" }
                    == ["md5 verified", "xxh64 verified", "xxh64 original"])
            #expect(try text(target.pushing("ascmhl/ascmhl_chain.xml")).matches(of: /<path>/).count == 2)
            // The card has what it had.
            #expect(try text(stage.root.pushing("A001/ascmhl/ascmhl_chain.xml")).utf8.elementsEqual(chain))
        }
    }

    @Test func `a history that is wrong is left alone, which the list and the log say`() async throws {
        let scene = try scene(.ascmhl)
        let list = Self.generation("<path size=\"16\">a.mov</path><xxh64>0000000000000000</xxh64>")
        let name = "0001_A001_2026-11-20_080000Z.mhl"
        let link = (1, name, MediaHashList.c4(of: Array(list.utf8)))
        let chain = String(decoding: try #require(MediaHashList.chain(nil, adding: [link])), as: UTF8.self)
        try scene.drop(FilePath("A001/ascmhl/\(name)"), list)
        try scene.drop("A001/ascmhl/ascmhl_chain.xml", chain)
        try await scene.run { stage in
            try offload(scene)
            try await written(stage, 2)
            #expect(stage.events.count("manifest.standalone") == 1)
            let reason = "it has another checksum or size of a.mov"
            #expect(stage.events.field("reason", of: "manifest.standalone") == .text(reason))
            let target = scene.directory.path.pushing("library/cards/A001")
            #expect(try names(in: target.appending("ascmhl")) == [name, "ascmhl_chain.xml"])
            #expect(try text(target.pushing("ascmhl/ascmhl_chain.xml")) == chain)
            let own = target.appending(try #require(try names(in: target).first { $0.hasSuffix(".mhl") }))
            #expect(try text(own).contains("this list does not continue the history in its folder: \(reason)"))
            #expect(try await verified(own, in: target, .xxh64) == 2)
        }
    }

    /// The history of a whole card, whose other folders are units of their own.
    @Test func `a unit that is a history gets no list in it`() async throws {
        let scene = try scene(.ascmhl)
        try await scene.run { stage in
            try offload(scene, "ascmhl", ["0001_A001.mhl", "ascmhl_chain.xml"])
            try await written(stage, 1)
            let target = scene.directory.path.pushing("library/cards/ascmhl")
            #expect(try names(in: target) == ["0001_A001.mhl", "ascmhl_chain.xml"])
            #expect(stage.events.count("manifest.skipped") == 1)
        }
    }

    private static func generation(_ hash: String) -> String {
        "<hashlist version=\"2.0\" xmlns=\"urn:ASC:MHL:v2.0\"><creatorinfo><tool version=\"1\">ascmhl</tool></creatorinfo>"
            + "<hashes><hash>\(hash)</hash></hashes></hashlist>\n"
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
            #expect(stage.events.count("manifest.skipped") == 1)
            #expect(stage.events.field("destination", of: "manifest.skipped") == .text("here"))
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
        let journal = try Journal(path: scene.journalPath, now: .now)
        let root = try scene.directory.makeDirectory("library/cards/A001")
        try scene.directory.write("x".utf8, to: "library/cards/A001/a")
        try await journal.endUnit("A001", ["a"], scene.route.manifest, in: scene.root, below: "cards/")
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
            try await stage.admit("A002/x", "x")
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

extension Journal {
    /// A unit of these files, all of which were delivered: its list is owed.
    ///
    /// - Parameter prefix: how their keys begin, before the unit.
    @discardableResult
    fileprivate func endUnit(
        _ unit: FilePath, _ names: [String], _ rule: ManifestRule?, in root: FilePath, below prefix: String = "",
        at destination: String = "here"
    ) async throws -> Batch {
        let digest = try #require(Digest(.xxh64, hex: "5c80c09683041123"))
        for name in names {
            let path = "\(unit)/\(name)"
            var admission = FileAdmission.made(path, in: root, key: prefix + path, to: destination) {
                ($0.manifest, $0.digests) = (rule, [digest])
            }
            admission.unit = unit
            _ = try await admit(admission, at: .now)
        }
        _ = try await closeUnit(unit, root: root, routes: ["all"], marker: nil, uptimes: [:], at: .now)
        let ending: EndingRule = { _ in ("kept", Array("{}".utf8)) }
        let room = ClaimCapacity(destination: destination, limits: [.small: 1])
        for _ in names {
            _ = try await withClaim(.small, rooms: [room], clock: { .now }, ending: ending) { claim in
                (.delivered(Proof(key: claim.delivery.key ?? "", size: 1, method: .size)), ())
            }
        }
        return try #require(try await batch(nil))
    }
}

/// What a checksum list says of the files that it does not list.
@Suite struct UnitManifestTests {
    private static let rule = ManifestRule(format: .mhl)

    /// An ended unit of `names`, all delivered to `lib` below `cards/UNIT`, after `change`.
    private func manifest(
        _ names: [String], in unit: FilePath = "A001", _ change: (inout [Job]) throws -> Void
    ) async throws -> UnitManifest {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let batch = try await journal.endUnit(unit, names, Self.rule, in: "/in", below: "cards/", at: "lib")
        var jobs = try await journal.jobs(ofBatch: batch.id)
        #expect(jobs.allSatisfy { $0.file.state == .delivered })
        try change(&jobs)
        return UnitManifest(batch, Self.rule, jobs, host: "box", version: "1")
    }

    private func lacking(_ content: ManifestContent?) throws -> String {
        let content = try #require(content)
        let document = try XMLReader.read(try #require(MediaHashList.classic(content)))
        return document.children.first { $0.name == "creatorinfo" }?.text(of: "log") ?? ""
    }

    @Test func `a file without a checksum is named in every list, the marker in none`() async throws {
        let manifest = try await manifest(["a.mov", "a.xmp", "raw/b.srt", "DONE"]) { jobs in
            for index in 1...3 { jobs[index].file.digests = [] }
            jobs[2].file.isDamaged = true
            jobs[3].file.role = "unit_marker"
            jobs[3].deliveries = []
        }
        let said =
            "not in this list: a.xmp (no xxh64 was computed), raw/b.srt (its journal row cannot be read)"
        #expect(try lacking(manifest.source) == said)
        #expect(manifest.source.unlisted == ["a.xmp", "raw/b.srt", "DONE"])
        let there = try #require(manifest.delivered(to: "lib"))
        #expect(try lacking(there.content) == said)
        #expect(there.content.entries.map(\.path) == ["a.mov"] && there.content.unlisted == ["a.xmp", "raw/b.srt"])
    }

    @Test func `a unit whose files are all in one folder of it has its list where it begins, not in that folder`()
        async throws
    {
        let reel = ["A001_C001.RDC/A001_C001_001.R3D", "A001_C001.RDC/A001_C001_002.R3D"]
        let there = try #require(try await manifest(reel) { _ in }.delivered(to: "lib"))
        #expect(there.folder == "cards/A001" && there.content.entries.map(\.path.string) == reel)
        // Where keys do not keep the way below the unit, it is where they are.
        let flat = try await manifest(reel) { jobs in
            for index in jobs.indices { jobs[index].deliveries[0].proof?.key = "flat/\(index).R3D" }
        }
        #expect(flat.delivered(to: "lib")?.folder == "flat")
    }

    /// Usual cards, each with the files of one clip, by the keys that `{dir}/{name}` and `{dir}/{mtime:%Y}/{name}` make.
    @Test(
        arguments: [
            ("DCIM", "100CANON", "IMG_0001.CR3"), ("PRIVATE", "M4ROOT/CLIP", "C0001.MP4"),
            ("XDROOT", "Clip", "A001C001.MXF"),
            ("CONTENTS", "CLIPS001/A001C001", "A001C001.MXF"),
            ("A001_0101XY.RDM", "A001_C001_0101XY.RDC", "A001_001.R3D"),
            ("BRAW", "", "A001_C001.braw"), ("Day 1", "A001_0101XY.RDM/A001_C001_0101XY.RDC", "A001_001.R3D"),
            ("Tag 1", "Szene 2/Köln", "Take 3.mov"), ("A001", "A001/A001", "A001.mov"),
            ("caf\u{65}\u{301}", "1", "a.mov"),
        ], [NameForm.clean, .folder])
    func `a list lies where its unit begins, for every layout of a card`(
        _ layout: (unit: String, folders: String, name: String), _ form: NameForm
    ) async throws {
        let (unit, folders, name) = layout
        func named(_ name: String) throws -> String {
            try KeyTemplate("{name}").key(
                KeyFields(path: FilePath(name), modified: 0, category: "", admitted: WallTime(milliseconds: 0)), form)
        }
        let files = ["1", "2"].map { folders.isEmpty ? "\($0)\(name)" : "\(folders)/\($0)\(name)" }
        let top = "cards/\(try named(unit))"
        for year in ["", "2026/"] {
            // A folder between the unit and its files hides where the unit begins, if another folder has the unit's name.
            if !year.isEmpty, folders.contains(unit) { continue }
            for count in 1...2 {
                let manifest = try await manifest(Array(files.prefix(count)), in: FilePath(unit)) { jobs in
                    for index in jobs.indices {
                        let names = try (folders.split(separator: "/").map(String.init) + ["\(index + 1)\(name)"])
                            .map(named)
                        let way = (names.dropLast() + [year + names[names.count - 1]]).joined(separator: "/")
                        jobs[index].deliveries[0].proof?.key = "\(top)/\(way)"
                    }
                }
                let there = try #require(manifest.delivered(to: "lib"))
                #expect(there.folder == top && there.content.entries.count == count)
            }
        }
    }

    @Test func `one without a checksum that lies beside the list's folder is named by its key`() async throws {
        let manifest = try await manifest(["a.mov", "a.xmp"]) { jobs in
            jobs[1].file.digests = []
            jobs[1].deliveries[0].proof?.key = "sidecars/a.xmp"
        }
        let there = try #require(manifest.delivered(to: "lib"))
        #expect(there.folder == "cards/A001" && there.content.unlisted.isEmpty)
        #expect(try lacking(there.content) == "not in this list: sidecars/a.xmp (elsewhere, and no xxh64 was computed)")
    }

    /// One that was linked at its admission has no key; one that was linked at its turn keeps its own.
    @Test(arguments: [nil, "cards/A001/b.mov"])
    func `what is there under another key is named, and moves no list to another folder`(_ key: String?) async throws {
        let manifest = try await manifest(["a.mov", "b.mov"]) { jobs in
            jobs[1].deliveries[0].key = key
            jobs[1].deliveries[0].proof = Proof(
                key: "archive/old.mov", size: 1, method: .size, details: [Proof.sameAsName: "7"])
        }
        let there = try #require(manifest.delivered(to: "lib"))
        #expect(there.folder == "cards/A001" && there.content.entries.map(\.path) == ["a.mov"])
        #expect(try lacking(there.content) == "not in this list: b.mov (same content as archive/old.mov)")
        // The card had both.
        #expect(manifest.source.entries.count == 2 && manifest.source.absent.isEmpty)
    }

    @Test func `a delivery whose proof cannot be read is named`() async throws {
        let manifest = try await manifest(["a.mov", "b.mov"]) { $0[1].deliveries[0].proof = nil }
        let there = try #require(manifest.delivered(to: "lib"))
        #expect(there.content.entries.map(\.path) == ["a.mov"])
        #expect(try lacking(there.content) == "not in this list: b.mov (its proof in the journal cannot be read)")
    }
}

/// Checksum lists that are owed by a journal of which not all can be read.
@Suite(.enabled(if: hasSQLite), .timeLimit(.minutes(15)))
struct ManifestDamageTests {
    @Test func `a list that cannot be known is put off, and the next one names what cannot be read`() async throws {
        let scene = try Scene()
        let journal = try Journal(path: scene.journalPath, now: .now)
        let rule = ManifestRule(format: .mhl)
        let first = try await journal.endUnit("A001", ["a", "b"], rule, in: scene.root).id
        let second = try await journal.endUnit("A002", ["a", "b"], rule, in: scene.root).id
        try #require(first < second)
        journal.close()
        try sql(scene.journalPath, "UPDATE manifest SET rule = x'00' WHERE batch_id = \(first)")
        let isB = "batch_id = \(second) AND path = CAST('A002/b' AS BLOB)"
        try sql(scene.journalPath, "UPDATE file SET digests = x'00' WHERE \(isB)")
        try await scene.run { stage in
            try await eventually("the second is written") { stage.events.count("manifest.written") >= 1 }
            try await eventually("the first is said") { stage.events.count("manifest.failed") == 1 }
            let home = scene.directory.path.pushing(FilePath("state/manifests/\(second)-A002"))
            let list = try text(home.appending(try #require(try names(in: home).first { $0.hasSuffix(".mhl") })))
            #expect(list.contains("<file>a</file>") && !list.contains("<file>b</file>"))
            #expect(list.contains("not in this list: b (its journal row cannot be read)"))
            try await eventually("only the first is owed, and later") {
                let now = try await stage.journal.nextManifest(at: .now)
                let later = try await stage.journal.nextManifest(at: .now + .seconds(120))
                return now == nil && later?.batch == first && later?.attempts == 1
            }
        }
    }
}
