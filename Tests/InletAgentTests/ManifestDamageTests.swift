import Foundation
import InletAgent
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// Checksum lists that are owed by a journal of which not all can be read.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")), .timeLimit(.minutes(8)))
struct ManifestDamageTests {
    private static let rule = ManifestRule(format: .mhl)

    /// Admits, closes and delivers a unit of `a` and `b`: its list is owed. - Returns: the batch.
    private func end(_ unit: FilePath, _ journal: Journal, _ root: FilePath) async throws -> Int64 {
        for name in ["a", "b"] {
            var plan = Plan(
                route: "all", category: "other", key: "\(unit)/\(name)", mediaType: "text/plain",
                destinations: ["here"])
            plan.manifest = Self.rule
            plan.digests = [try #require(Digest(.xxh64, hex: "5c80c09683041123"))]
            let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1)
            var admission = FileAdmission(
                Arrival(root: root, path: unit.appending(name), identity: identity), plan: plan,
                lanes: ["here": .small], uptimes: [:])
            admission.unit = unit
            _ = try await journal.admit(admission, at: .now)
        }
        _ = try await journal.closeUnit(unit, root: root, routes: ["all"], marker: nil, uptimes: [:], at: .now)
        let ending: EndingRule = { _ in Ending(disposition: "kept", receipt: Array("{}".utf8)) }
        let room = ClaimRoom(destination: "here", limits: [.small: 1])
        for _ in 0..<2 {
            _ = try await journal.withClaim(
                .small, rooms: [room], clock: { .now }, ending: ending
            ) { claim in
                (.delivered(Proof(key: claim.delivery.key ?? "", size: 1, method: .size)), ())
            }
        }
        return try #require(try await journal.batch(nil)).id
    }

    private func sql(_ journal: FilePath, _ text: String) throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
        shell.arguments = ["-cmd", ".timeout 60000", journal.string, text]
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 0)
    }

    @Test func `a list that cannot be known is put off, and the next one names what cannot be read`() async throws {
        let scene = try Scene()
        let path = scene.directory.path.pushing("state/journal.sqlite")
        let journal = try Journal(path: path, now: .now)
        let first = try await end("A001", journal, scene.root)
        let second = try await end("A002", journal, scene.root)
        try #require(first < second)
        journal.close()
        try sql(path, "UPDATE manifest SET rule = x'00' WHERE batch_id = \(first)")
        try sql(path, "UPDATE file SET digests = x'00' WHERE batch_id = \(second) AND path = CAST('A002/b' AS BLOB)")
        try await scene.run { stage in
            try await eventually("the second is written") { stage.events.count("manifest.written") >= 1 }
            try await eventually("the first is said") { stage.events.count("manifest.failed") == 1 }
            let home = scene.directory.path.pushing(FilePath("state/manifests/\(second)-A002"))
            let list = try text(home.appending(try #require(try names(in: home).first { $0.hasSuffix(".mhl") })))
            #expect(list.contains("<file>a</file>") && !list.contains("<file>b</file>"))
            #expect(list.contains("not in this list: b (what the journal knows of it cannot be read)"))
            try await eventually("only the first is owed, and later") {
                let now = try await stage.journal.nextManifest(at: .now)
                let later = try await stage.journal.nextManifest(at: .now + .seconds(120))
                return now == nil && later?.batch == first && later?.attempts == 1
            }
        }
    }
}
