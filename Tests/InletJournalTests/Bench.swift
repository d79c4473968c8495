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

    /// Ends the journal, as the end of a process does. - Returns: another one at its path, for the test to close.
    func reopen() throws(JournalError) -> Journal {
        journal.close()
        return try Journal(path: journal.path, now: Self.start)
    }

    /// Admits `name` to `destinations`. - Returns: its id.
    @discardableResult
    func admit(
        _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["r2"], key: String? = nil,
        lane: Lane = .big, expire: Duration? = nil, at time: WallTime = start
    ) async throws -> Int64 {
        try await admit(.test(name, identity, to: destinations, key: key, lane: lane, expire: expire), at: time)
    }

    /// Admits a file of which something is to be sent. - Returns: its id.
    @discardableResult
    func admit(_ admission: FileAdmission, at time: WallTime = start) async throws -> Int64 {
        let outcome = try await journal.admit(admission, at: time)
        guard case .admitted(let id) = outcome else { throw Unexpected(what: "\(outcome)") }
        return id
    }

    /// Offers a file that must be rejected. - Returns: its id.
    func reject(_ admission: FileAdmission) async throws -> Int64 {
        let outcome = try await offer(admission)
        guard case .rejected(let id) = outcome else { throw Unexpected(what: "\(outcome)") }
        return id
    }

    /// Offers a file of which nothing must be sent, as `original` is there. - Returns: its id.
    @discardableResult
    func duplicate(_ admission: FileAdmission, of original: Int64) async throws -> Int64 {
        let outcome = try await offer(admission)
        guard case .duplicate(let id, of: original) = outcome else { throw Unexpected(what: "\(outcome)") }
        return id
    }

    /// Claims one delivery and settles it so; returns what was claimed.
    @discardableResult
    func settle(
        _ settlement: ClaimOutcome, of destination: String = "r2", lane: Lane = .big, at time: WallTime = start
    ) async throws -> DeliveryRow? {
        try await journal.settle(settlement, [.test(destination)], lane: lane, at: time)?.row
    }

    /// Holds a claim while `body` runs, which says how it ends; fails when there is nothing to claim.
    func hold(at time: WallTime = start, _ body: (borrowing Claim) async throws -> ClaimOutcome) async throws {
        let held: Void? = try await journal.withClaim(.big, rooms: [.test()], clock: { time }) {
            claim in (try await body(claim), ())
        }?.1
        guard held != nil else { throw Unexpected(what: "nothing to claim") }
    }

    /// Claims one delivery, which leaves these notes, and settles it so.
    func leave(_ notes: [String: [UInt8]], _ settlement: ClaimOutcome) async throws {
        try await hold { claim in
            try await journal.checkpoint(claim.delivery.id, notes)
            return settlement
        }
    }

    func job(_ id: Int64) async throws -> Job {
        guard let job = try await journal.job(id) else { throw Unexpected(what: "no job \(id)") }
        return job
    }

    /// Admits `name` to `r2`, where nothing else is due, and settles its delivery so; with `finishes`, the file is finished too.
    /// - Returns: its id.
    @discardableResult
    func settled(
        _ name: String, _ state: DeliveryState, _ identity: FileIdentity = .test(), finishes: Bool = false
    ) async throws -> Int64 {
        let id = try await admit(name, identity)
        try await settle(.test(state))
        if finishes { try await finishAll() }
        return id
    }

    /// Settles one delivery so, and finishes whatever has ended.
    func settleAndFinish(
        _ settlement: ClaimOutcome, of destination: String = "r2", _ disposition: String = Disposition.kept
    ) async throws {
        try await settle(settlement, of: destination)
        try await finishAll(disposition)
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
        let id = try await admit(.test("gigs/X/a", unit: "gigs/X"))
        try await closeUnit("gigs/X", marker: .test("gigs/X/DONE", .test(size: 0)))
        try await settle(.test(.failed))
        // The file, and then its marker.
        try await finishAll()
        try await finishAll()
        return id
    }
}

/// Contents, and the history.
extension Bench {
    /// Claims all that is due.
    func claimAll(
        _ destinations: [String] = ["r2"], lane: Lane = .big, most: Int = 100, at time: WallTime = start
    ) async throws -> [Claim] {
        try await journal.claims(lane, rooms: destinations.map { .test($0) }, most: most, at: time)
    }

    /// Ends a claim: as a link where the content is there, else so.
    func end(_ claim: Claim, _ settlement: ClaimOutcome, at time: WallTime = start) async throws {
        let end = claim.original.map { ClaimOutcome.delivered($0.link) } ?? settlement
        _ = try await journal.exchange([(claim.delivery.id, end)], for: .none(.big), at: time)
    }

    /// Delivers `name` to `destinations`. - Returns: the job.
    @discardableResult
    func deliver(_ admission: FileAdmission) async throws -> Int64 {
        let id = try await admit(admission)
        for claim in try await claimAll(admission.steps.destinations) {
            try await end(claim, .delivered(.test(claim.delivery.key ?? "?")))
        }
        try await finishAll()
        return id
    }

    /// Long after everything.
    static let later = start + .seconds(365 * 86_400)

    /// Moves all that was finished then or before to the history. - Returns: how many files that were.
    @discardableResult
    func prune(at time: WallTime = later) async throws -> Int {
        var files = 0
        var place: HistoryPlace? = (0, 0)
        while let from = place {
            let step = try await journal.moveToHistory(finishedBy: time, from: from)
            (files, place) = (files + step.files, step.next)
        }
        return files
    }

    /// Delivers `name`, finishes it as kept, and moves it to the history. - Returns: its number.
    func bury(_ name: String, _ identity: FileIdentity = .test(), key: String? = nil) async throws -> Int64 {
        let id = try await admit(name, identity, key: key)
        try await settle(.delivered(.test(key ?? name)))
        try await finishAll()
        guard try await prune() == 1 else { throw Unexpected(what: "\(name) did not go to the history") }
        return id
    }
}

/// What is done to the journal and asked of it, at the bench's time unless another is given.
extension Bench {
    @discardableResult
    func offer(_ admission: FileAdmission) async throws -> AdmissionOutcome {
        try await journal.admit(admission, at: Self.start)
    }

    @discardableResult
    func offer(_ admissions: [FileAdmission]) async throws -> [AdmittedFile] {
        try await journal.admit(admissions, at: Self.start)
    }

    func admitSet(_ admission: FileAdmission) async throws -> AdmittedFile {
        try await journal.admitSet(admission, at: Self.start)
    }

    @discardableResult
    func admitLate(
        _ companion: CompanionAdmission, main: Int64, uptimes: [String: Int64] = [:]
    ) async throws -> AdmissionOutcome {
        try await journal.admitLate(companion, main: main, uptimes: uptimes, at: Self.start)
    }

    @discardableResult
    func closeUnit(_ unit: FilePath, marker: FoundFile? = nil, uptimes: [String: Int64] = [:]) async throws
        -> [Batch]
    {
        try await journal.closeUnit(
            unit, root: "/in", routes: ["all"], marker: marker, uptimes: uptimes, at: Self.start)
    }

    @discardableResult
    func exchange(
        _ ended: [EndedClaim] = [], for wish: ClaimRequest, ending: EndingRule? = nil, at time: WallTime = start
    ) async throws -> Exchange {
        try await journal.exchange(ended, for: wish, ending: ending, at: time)
    }

    @discardableResult
    func recover(_ destinations: [String], at time: WallTime = start) async throws -> Recovery {
        try await journal.recover(destinations: destinations, at: time)
    }

    /// - Returns: the files that have expired.
    @discardableResult
    func setUptime(_ destination: String, _ uptime: Int64, at time: WallTime = start) async throws -> [Int64] {
        try await journal.setUptime(destination, uptime, at: time)
    }

    func retry(_ file: Int64, at time: WallTime = start) async throws -> Bool {
        try await journal.retry(file, uptimes: [:], at: time)
    }

    /// - Returns: the deliveries that were running; nil when nothing was open.
    @discardableResult
    func cancel(_ file: Int64, at time: WallTime = start) async throws -> [Int64]? {
        try await journal.cancel(file, at: time)
    }

    func forget(_ file: Int64) async throws -> Bool { try await journal.forget(file) }

    func act(_ action: FileAction, on files: [Int64]) async throws -> (outcomes: [ActionOutcome], running: [Int64]) {
        try await journal.act(action, on: files, at: Self.start)
    }

    @discardableResult
    func refresh(
        _ file: FileRow, identity: FileIdentity
    ) async throws -> (isNoted: Bool, isOutdated: Bool, goesOn: Bool) {
        try await journal.refresh(file, identity: identity, at: Self.start)
    }

    func recall(_ arrivals: [FoundFile]) async throws -> [KnownFile] {
        try await journal.recall(arrivals, tolerance: 0)
    }

    func unfinished() async throws -> [Job] { try await journal.unfinished(at: Self.start, limit: 100) }

    func leftovers() async throws -> [Leftover] { try await journal.leftovers(at: Self.start, limit: 100) }

    func batch(of file: Int64) async throws -> Batch? { try await journal.batch(of: file) }

    func nextDue(_ destinations: [String]) async throws -> WallTime? {
        try await journal.nextDue(destinations: destinations)
    }

    /// How many files are in each state.
    func files() async throws -> [FileState: Int] { try await journal.totals().mapValues(\.files) }

    @discardableResult
    func setSinks(_ sinks: [NotificationSink]) async throws -> (identity: String, dropped: [String: Int]) {
        try await journal.setSinks(sinks, at: Self.start)
    }

    func post(_ event: NotificationEvent, _ payload: [UInt8]) async throws {
        try await journal.post(event, payload, at: Self.start)
    }
}

struct Unexpected: Error {
    let what: String
}

/// The `sqlite3` shell, to look into a journal from outside and to damage it.
enum SQLiteShell {
    static let path = "/usr/bin/sqlite3"
    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: path) }

    @discardableResult
    static func run(_ file: FilePath, _ sql: String) throws -> String { try Bench.run(path, [file.string, sql]) }
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
    /// Claims what is due first in these rooms, and settles it so. - Returns: nil when nothing is due.
    @discardableResult
    func settle(
        _ settlement: ClaimOutcome, _ rooms: [ClaimCapacity] = [.test()], lane: Lane = .big,
        at time: WallTime = Bench.start,
        ending: EndingRule? = nil
    ) async throws -> (row: DeliveryRow, file: SettledFile)? {
        let settled = try await withClaim(lane, rooms: rooms, clock: { time }, ending: ending) { claim in
            (settlement, claim.delivery)
        }
        return settled.map { ($0.1, $0.0) }
    }

    /// When anything to `destinations` is due, in either lane, with room for all of it.
    func nextDue(destinations: [String]) async throws -> WallTime? {
        let rooms = destinations.map { ClaimCapacity(destination: $0, limits: [.small: 1000, .big: 1000]) }
        let times = [try await nextDue(.small, rooms: rooms), try await nextDue(.big, rooms: rooms)]
        return times.compactMap(\.self).min()
    }
}

extension Journal {
    /// - Returns: the deliveries that were running; nil when nothing was open.
    func cancel(_ file: Int64, at now: WallTime) async throws(JournalError) -> [Int64]? {
        let (outcomes, running) = try await act(.cancel, on: [file], at: now)
        return outcomes == [.done] ? running : nil
    }

    func forget(_ file: Int64) async throws(JournalError) -> Bool {
        try await act(.forget, on: [file], at: Bench.start).outcomes == [.done]
    }

    /// Cancels everything that waits, step after step. - Returns: how many files, and the deliveries that were running.
    func clearAll(at now: WallTime) async throws -> (files: Int, running: [Int64]) {
        var (files, running) = (0, [Int64]())
        var left: Range<Int64>? = Journal.anyFile
        while let numbers = left {
            let step = try await clear(numbers, at: now)
            (files, running, left) = (files + step.files, running + step.running, step.next)
        }
        return (files, running)
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
