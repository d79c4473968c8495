import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import Synchronization
import SystemPackage

/// A journal of the test's own, with words for what files, plans and proofs the tests need.
final class Bench: Sendable {
    static let start = WallTime(milliseconds: 1_700_000_000_000)
    let directory: TemporaryDirectory
    let journal: Journal

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Self.start)
    }

    deinit { journal.close() }

    /// Admits `name` to `destinations` and returns its id.
    func admit(
        _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["r2"], key: String? = nil,
        lane: Lane = .big, expire: Duration? = nil, at time: WallTime = start
    ) async throws -> Int64 {
        let outcome = try await journal.admit(
            .test(name, identity, to: destinations, key: key, lane: lane, expire: expire), at: time)
        guard case .admitted(let id) = outcome else { throw Unexpected(what: "\(outcome)") }
        return id
    }

    /// Claims one delivery and settles it so; returns what was claimed.
    @discardableResult
    func settle(
        _ settlement: Settlement, of destination: String = "r2", lane: Lane = .big, at time: WallTime = start
    ) async throws -> DeliveryRow? {
        try await journal.withClaim(lane, rooms: [.test(destination)], clock: { time }) { claim in
            (settlement, claim.delivery)
        }?.1
    }

    /// Holds a claim while `body` runs, which says how it ends; fails when there is nothing to claim.
    func hold(
        at time: WallTime = start, _ body: (borrowing Claim) async throws -> Settlement
    ) async throws {
        let held: Void? = try await journal.withClaim(.big, rooms: [.test()], clock: { time }) {
            claim in (try await body(claim), ())
        }?.1
        guard held != nil else { throw Unexpected(what: "nothing to claim") }
    }

    func job(_ id: Int64) async throws -> Job {
        guard let job = try await journal.job(id) else { throw Unexpected(what: "no job \(id)") }
        return job
    }

    /// Finishes whatever has ended, as a finisher would that always succeeds.
    func finishAll(_ disposition: String = Disposition.kept, at time: WallTime = start) async throws {
        for job in try await journal.unfinished(at: time, limit: 100) {
            _ = try await journal.finish(job.file, disposition: disposition, receipt: Array("{}".utf8), at: time)
        }
    }
}

extension Bench {
    /// Ends a unit of one file that has failed. - Returns: the file's id.
    func failUnit() async throws -> Int64 {
        var admission = FileAdmission.test("gigs/X/a")
        admission.unit = "gigs/X"
        guard case .admitted(let id) = try await journal.admit(admission, at: Self.start) else {
            throw Unexpected(what: "not admitted")
        }
        let marker = Arrival.test("gigs/X/DONE", .test(size: 0))
        _ = try await journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: marker, uptimes: [:], at: Self.start)
        try await settle(.test(.failed))
        // The file, and then its marker.
        try await finishAll()
        try await finishAll()
        return id
    }
}

struct Unexpected: Error {
    let what: String
}

extension FileIdentity {
    static func test(
        size: Int64 = 10, modified: Int64 = 1, changed: Int64 = 1, inode: UInt64 = 1, device: UInt64 = 1
    ) -> FileIdentity {
        FileIdentity(size: size, modified: modified, changed: changed, inode: inode, device: device)
    }
}

extension Arrival {
    static func test(_ name: String, _ identity: FileIdentity = .test()) -> Arrival {
        Arrival(root: "/in", path: FilePath(name), identity: identity)
    }
}

extension FileAdmission {
    static func test(
        _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["r2"], key: String? = nil,
        lane: Lane = .big, expire: Duration? = nil, uptime: Int64 = 0
    ) -> FileAdmission {
        let plan = Plan(
            route: "all", category: "other", key: key ?? name, mediaType: "text/plain", destinations: destinations,
            retry: RetryPolicy(expire: expire))
        return FileAdmission(
            .test(name, identity), plan: plan, lanes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, lane) }),
            uptimes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, uptime) }))
    }

    static func refused(_ name: String, _ reason: String = "too large") -> FileAdmission {
        FileAdmission(.test(name), rejectedBy: Route(name: "all", to: ["r2"]), reason: reason)
    }
}

extension ClaimRoom {
    static func test(_ destination: String = "r2", _ limit: Int = 100) -> ClaimRoom {
        ClaimRoom(destination: destination, limits: [.small: limit, .big: limit])
    }
}

extension Settlement {
    static func test(_ state: DeliveryState) -> Settlement {
        state == .delivered
            ? .delivered(.test()) : .ended(state, code: .internalFault, reason: "the test says \(state.rawValue)")
    }

    static func again(_ time: WallTime = Bench.start, counts: Bool = false) -> Settlement {
        .again(at: time, countsAttempt: counts, code: .timedOut, reason: "slow")
    }
}

extension Proof {
    static func test(_ key: String = "k") -> Proof {
        Proof(
            key: key, size: 10, method: .md5Parts,
            content: ContentHash(digest: Digest(.md5, [1, 2, 3]), partSize: nil))
    }
}

/// The `sqlite3` shell, to look into a journal from outside and to damage it.
enum SQLiteShell {
    static let path = "/usr/bin/sqlite3"
    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: path) }

    @discardableResult
    static func run(_ file: FilePath, _ sql: String) throws -> String {
        try Bench.run(path, [file.string, sql])
    }
}

extension Bench {
    /// Runs a program to its end and returns what it printed; throws unless it exits with 0.
    @discardableResult
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Unexpected(what: "\(program): \(text)") }
        return text
    }
}

/// Set once, seen by every task.
final class Flag: Sendable {
    private let flag = Mutex(false)
    var isSet: Bool { flag.withLock(\.self) }
    func set() { flag.withLock { $0 = true } }
}

extension Journal {
    /// When anything to `destinations` is due, in either lane, with room for all of it.
    func nextDue(destinations: [String]) async throws -> WallTime? {
        let rooms = destinations.map { ClaimRoom(destination: $0, limits: [.small: 1000, .big: 1000]) }
        let times = [try await nextDue(.small, rooms: rooms), try await nextDue(.big, rooms: rooms)]
        return times.compactMap(\.self).min()
    }
}

/// What a person does to one file.
extension Journal {
    /// - Returns: the deliveries that were running; nil when nothing was open.
    func cancel(_ file: Int64, at now: WallTime) async throws(JournalError) -> [Int64]? {
        let (outcomes, running) = try await act(.cancel, on: [file], at: now)
        return outcomes == [.done] ? running : nil
    }

    func forget(_ file: Int64) async throws(JournalError) -> Bool {
        try await act(.forget, on: [file], at: Bench.start).outcomes == [.done]
    }
}

#if DEBUG
    extension Journal {
        /// The statements that `body` has SQLite run here, each once, without those of triggers.
        func statements(of body: () async throws -> Void) async throws -> [String] {
            try await seen(in: body).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        }

        /// How often `body` has SQLite run a statement that begins with `verb`, without those of triggers.
        func runs(of verb: String, in body: () async throws -> Void) async throws -> Int {
            try await seen(in: body).count { $0.prefix { $0 != " " } == verb }
        }

        private func seen(in body: () async throws -> Void) async throws -> [String] {
            let seen = SeenStatements()
            try await trace { seen.add($0) }
            try await body()
            try await trace(nil)
            return seen.all
        }
    }

    private final class SeenStatements: Sendable {
        private let texts = Mutex<[String]>([])
        var all: [String] { texts.withLock(\.self) }
        func add(_ text: String) { texts.withLock { $0.append(text) } }
    }
#endif

/// How the files of a volume stand, as the journal knows them.
struct VolumeStanding: Equatable {
    var proved = 0
    var bytes: Int64 = 0
    var unproved: [FilePath] = []
}

extension Journal {
    /// nil while the volume must stay in. In pages of one, so that all of them are met.
    func standing(of volume: String, proofs: Int? = nil) async throws -> VolumeStanding? {
        guard try await mayLeave(volume, proofs: proofs) else { return nil }
        var (standing, last) = (VolumeStanding(), FilePath())
        while let file = try await files(of: volume, proofs: proofs, after: last, limit: 1).first {
            last = file.path
            if file.isDelivered {
                standing.proved += 1
                standing.bytes += file.identity.size
            } else {
                standing.unproved.append(file.path)
            }
        }
        return standing
    }
}
