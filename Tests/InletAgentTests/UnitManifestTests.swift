import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// What a checksum list says of the files that it does not list.
@Suite struct UnitManifestTests {
    private static let rule = ManifestRule(format: .mhl)

    /// An ended unit of `names`, all delivered to `lib` below `cards/A001`, after `change`.
    private func manifest(_ names: [String], _ change: (inout [Job]) -> Void) async throws -> UnitManifest {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for name in names { _ = try await journal.admit(try Self.admission(name), at: .now) }
        _ = try await journal.closeUnit("A001", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: .now)
        let ending: EndingRule = { _ in Ending(disposition: "kept", receipt: Array("{}".utf8)) }
        let room = ClaimRoom(destination: "lib", limits: [.small: 9])
        for _ in names {
            _ = try await journal.withClaim(
                .small, rooms: [room], clock: { .now }, ending: ending
            ) { claim in
                (.delivered(Proof(key: claim.delivery.key ?? "", size: 1, method: .size)), ())
            }
        }
        let batch = try #require(try await journal.batch(nil))
        var jobs = try await journal.jobs(ofBatch: batch.id)
        #expect(jobs.allSatisfy { $0.file.state == .delivered })
        change(&jobs)
        return UnitManifest(batch, Self.rule, jobs, host: "box", version: "1")
    }

    private static func admission(_ name: String) throws -> FileAdmission {
        var plan = Plan(
            route: "all", category: "other", key: "cards/A001/\(name)", mediaType: "text/plain", destinations: ["lib"])
        plan.manifest = rule
        plan.digests = [try #require(Digest(.xxh64, hex: "5c80c09683041123"))]
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1)
        var admission = FileAdmission(
            Arrival(root: "/in", path: FilePath("A001/\(name)"), identity: identity), plan: plan,
            lanes: ["lib": .small], uptimes: [:])
        admission.unit = "A001"
        return admission
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
            "not in this list: a.xmp (no xxh64 was computed), raw/b.srt (what the journal knows of it cannot be read)"
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
        #expect(try lacking(there.content) == "not in this list: b.mov (the journal's proof of it cannot be read)")
    }
}
