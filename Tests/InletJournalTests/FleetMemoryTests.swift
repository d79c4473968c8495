import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// What an agent remembers of its fleet.
@Suite(.seated) struct FleetMemoryTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let identity = FleetIdentity(
        agent: 3, name: "station-3", tag: "k3f9q2", token: [0, 15, 16, 255], journal: "j", fleet: "f")

    /// Writes secrets backwards.
    private struct Backwards: Sealing {
        var isLost = false
        func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
        func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
        func closed(_ secrets: ProofSecrets) -> ProofSecrets {
            ProofSecrets(secrets.all.mapValues { String($0.reversed()) })
        }
        func opened(_ secrets: ProofSecrets) -> ProofSecrets? { isLost ? nil : closed(secrets) }
    }

    @Test func `the token is sealed, and the rest of the identity is kept`() async throws {
        bench.journal.close()
        let path = bench.journal.path
        let journal = try Journal(path: path, now: Bench.start, seal: Backwards())
        #expect(try await journal.fleetIdentity() == nil)
        try await journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await journal.fleetIdentity() == Self.identity)
        journal.close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path.string))
        #expect(
            bytes.firstRange(of: Data("ff01f000".utf8)) != nil && bytes.firstRange(of: Data("000f10ff".utf8)) == nil)
        let other = try Journal(path: path, now: Bench.start, seal: Backwards(isLost: true))
        defer { other.close() }
        await #expect(throws: JournalError.self) { try await other.fleetIdentity() }
        try await other.keepFleetIdentity(nil, isFresh: false)
        #expect(try await other.fleetIdentity() == nil)
    }

    @Test func `hellos and marks only grow, and begin anew with another identity`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        for mark in [5, 9, 7] as [Int64] { try await bench.journal.saw(mark: mark) }
        #expect(try await bench.journal.fleetSeen() == 9)
        #expect(try await bench.journal.nextHello() == 1)
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.fleetSeen() == 9)
        #expect(try await journal.nextHello() == 2)
        try await journal.keepFleetIdentity(Self.identity, isFresh: false)
        #expect(try await journal.nextHello() == 3)
        try await journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await journal.fleetSeen() == 0)
        #expect(try await journal.nextHello() == 1)
    }

    @Test func `an identity that is used twice stays so, with its token, until another is kept`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await bench.journal.nextHello() == 1)
        var copy = Self.identity
        copy.isUsedTwice = true
        try await bench.journal.keepFleetIdentity(copy, isFresh: false)
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.fleetIdentity() == copy)
        try await journal.keepFleetIdentity(Self.identity, isFresh: false)
        #expect(try await journal.fleetIdentity() == Self.identity)
        #expect(try await journal.nextHello() == 2)
    }

    @Test func `the mark of an answer is durable with what it granted`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        try await bench.journal.reserveKeys(at: ["r2": nil])
        try await bench.journal.saw(mark: 1)
        for (name, mark) in [("a", 2), ("b", 3)] as [(String, Int64)] {
            try await bench.admit(name)
            try await bench.answer(.granted(mark: mark))
        }
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.fleetSeen() == 3)
    }

    @Test func `a command that was carried out is remembered`() async throws {
        #expect(try await !bench.journal.knowsFleetCommand("one"))
        try await bench.journal.keepFleetCommand("one")
        try await bench.journal.keepFleetCommand("one")
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.knowsFleetCommand("one"))
        #expect(try await !journal.knowsFleetCommand("two"))
    }

    @Test func `draining is remembered, and ends with the identity`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await !bench.journal.fleetIsDraining())
        try await bench.journal.keepFleetDraining(true)
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.fleetIsDraining())
        try await journal.keepFleetIdentity(Self.identity, isFresh: false)
        #expect(try await journal.fleetIsDraining())
        try await journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await !journal.fleetIsDraining())
    }

    @Test func `own prefixes and the roster are remembered`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        try await bench.journal.keepOwnPrefix("https://x", "me/")
        try await bench.journal.keepOwnPrefix("https://y", "we/")
        try await bench.journal.keepOwnPrefix("https://y", nil)
        try await bench.journal.keepFleetRoster([("nas2", "aaaaaa", "j2"), ("nas4", "bbbbbb", "j4")])
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.ownPrefixes() == ["https://x": "me/"])
        let roster = try await journal.fleetRoster()
        #expect(roster.map(\.name) == ["nas2", "nas4"] && roster.map(\.journal) == ["j2", "j4"])
    }

    @Test func `keys are reported from a mark on, page by page, and none of a former identity`() async throws {
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        try await bench.journal.reserveKeys(at: ["r2": nil])
        for number in 1...7 {
            try await bench.admit("\(number)")
            try await bench.answer(.granted(mark: Int64(number)))
        }
        var (keys, last): ([String], Int64) = ([], 0)
        while true {
            let page = try await bench.journal.grantedKeys(after: 3, limit: 2, from: last)
            guard let end = page.last else { break }
            (keys, last) = (keys + page.map(\.key), end.id)
        }
        #expect(keys == ["4", "5", "6", "7"])
        try await bench.journal.keepFleetIdentity(Self.identity, isFresh: true)
        #expect(try await bench.journal.grantedKeys(after: 0, limit: 9).isEmpty)
        // They stay granted.
        try await bench.journal.reserveKeys(at: ["r2": nil])
        #expect(try await bench.requests().isEmpty)
        var other = Self.identity
        other.fleet = "g"
        try await bench.journal.keepFleetIdentity(other, isFresh: true)
        try await bench.journal.reserveKeys(at: ["r2": nil])
        #expect(try await bench.requests().count == 7)
    }

    /// The work of an agent, on a journal of its own. - Returns: its files once it is closed.
    private static func bytes(_ prepare: (Journal) async throws -> Void) async throws -> [Data] {
        let bench = try Bench()
        try await prepare(bench.journal)
        try await bench.offer((0..<40).map { .test("f-\($0)") })
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test("k"))) }
        try await bench.finishAll()
        let id = try await bench.admit("again")
        try await bench.cancel(id)
        _ = try await bench.retry(id)
        try await bench.prune()
        func bytes(_ suffix: String) throws -> Data {
            try Data(contentsOf: URL(fileURLWithPath: bench.journal.path.string + suffix))
        }
        let log = try bytes("-wal").count
        bench.journal.close()
        return [try bytes(""), Data("\(log)".utf8)]
    }

    @Test func `without a fleet not one page of the journal differs, and nothing of a fleet is written`() async throws {
        let plain = try await Self.bytes { _ in }
        let asked = try await Self.bytes { journal in
            try await journal.reserveKeys(at: [:])
            #expect(try await journal.fleetIdentity() == nil)
            #expect(try await journal.fleetSeen() == 0)
            #expect(try await journal.keyRequests(limit: 9).isEmpty)
            #expect(try await journal.keysToReturn(limit: 9).isEmpty)
        }
        #expect(plain == asked)
        let left = try await Self.bytes { journal in
            try await journal.reserveKeys(at: ["r2": nil])
            try await journal.reserveKeys(at: [:])
        }
        #expect(plain == left)
    }
}

/// Receipts for the fleet's search.
@Suite(.seated) struct FleetReceiptTests {
    private let bench: Bench

    init() async throws {
        bench = try Bench()
        let identity = FleetIdentity(agent: 1, name: "a", tag: "aaaaaa", token: [1], journal: "j", fleet: "f")
        try await bench.journal.keepFleetIdentity(identity, isFresh: true)
    }

    private func published(after id: Int64 = 0, limit: Int = 100) async throws -> [PublishedReceipt] {
        try await bench.journal.fleetReceipts(after: id, limit: limit)
    }

    @Test func `a receipt says what there is at each destination, without secrets`() async throws {
        var admission = FileAdmission.content(7, "d/a.txt", .off, to: ["r2", "s3"])
        admission.plan?.labels = ["event": "wedding"]
        try await bench.admit(admission)
        for claim in try await bench.claimAll(["r2", "s3"]) {
            var proof = Proof.test("d/a.txt")
            proof.url = "https://user:word@x/a%20b.txt?signature=1#f"
            try await bench.end(claim, .delivered(proof))
        }
        _ = try await bench.reject(.refused("b.txt"))
        try await bench.finishAll()
        let rows = try await published()
        #expect(
            rows.map(\.destination) == ["r2", "s3", nil] && rows.map(\.state) == ["delivered", "delivered", "rejected"])
        #expect(rows[0].id == rows[1].id && rows[1].id < rows[2].id)
        #expect(rows[0].root == "/in" && rows[0].path == "d/a.txt" && rows[0].size == 10 && rows[0].key == "d/a.txt")
        #expect(rows[0].url == "https://x/a%20b.txt" && rows[0].labels == ["event": "wedding"])
        #expect(rows[0].sha256 == Digest.content(7).bytes && rows[2].sha256 == nil)
        // A receipt is never divided.
        #expect(try await published(limit: 1).count == 2)
        #expect(try await published(after: rows[0].id, limit: 1).map(\.path) == ["b.txt"])
    }

    @Test func `an agent of a fleet keeps receipts before anybody asks for them`() async throws {
        try await bench.journal.reserveKeys(at: ["s3": nil])
        try await bench.deliver(.test("a"))
        #expect(try await bench.prune() == 1)
        #expect(try await published().map(\.key) == ["a"])
    }

    @Test func `receipts are there until they are up, also those whose files are in the history`() async throws {
        #expect(try await published().isEmpty)
        try await bench.deliver(.test("a"))
        let first = try await published()[0].id
        try await bench.journal.keepFleetCursor(first)
        try await bench.deliver(.test("b"))
        let forgotten = try await bench.deliver(.test("c"))
        try await bench.deliver(.test("d"))
        #expect(try await bench.forget(forgotten))
        #expect(try await bench.prune() == 3)
        try await bench.deliver(.test("e"))
        let rows = try await published(after: bench.journal.fleetCursor())
        #expect(rows.map(\.key) == ["b", "d", "e"] && rows.map(\.id) == rows.map(\.id).sorted())
        #expect(try await published(after: rows[0].id, limit: 1).map(\.key) == ["d"])
        try await bench.journal.keepFleetCursor(rows[2].id)
        #expect(try await published(after: 0).map(\.key) == ["e"])
        #expect(try await bench.journal.fleetCursor() == rows[2].id)
    }
}
