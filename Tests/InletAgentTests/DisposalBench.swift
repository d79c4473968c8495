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

/// A delivered file whose finisher is driven step by step, as after a crash.
struct DisposalBench {
    let directory: TemporaryDirectory
    let root: FilePath
    let journal: Journal
    let id: Int64
    let pool = BlockingPool(name: "test", threads: 1)
    var places: FinishPlaces
    var file: FilePath { root.pushing("sub/a.txt") }
    var privateFile: FilePath { root.pushing(FilePath("sub/.inlet-finishing-\(id).tmp")) }
    var held: FilePath { root.pushing(FilePath(".inlet/held/\(id)/a.txt")) }
    var archived: FilePath { root.pushing(".inlet/done/sub/a.txt") }

    /// - Parameter hasChecksum: whether what was delivered was proved by more than its length.
    init(
        _ onSuccess: Route.OnSuccess, hasChecksum: Bool = false, volume: Volume? = nil,
        in folder: TemporaryDirectory? = nil
    ) async throws {
        directory = try folder ?? TemporaryDirectory()
        root = directory.path.appending("drop")
        try directory.write(Array("content".utf8), to: "drop/sub/a.txt")
        try setTime(root.pushing("sub/a.txt"))
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let identity = try #require(try FileLook.look(at: root.pushing("sub/a.txt")).identity)
        let plan = Plan(
            route: "all", category: "other", key: "a", mediaType: "text/plain", destinations: ["here"],
            onSuccess: onSuccess)
        let admission = FileAdmission(
            Arrival(root: root, path: "sub/a.txt", identity: identity, volume: volume), plan: plan,
            lanes: ["here": .small],
            uptimes: [:])
        guard case .admitted(let id) = try await journal.admit(admission, at: .now) else { throw Unexpected() }
        self.id = id
        let rooms = [ClaimRoom(destination: "here", limits: [.small: 1])]
        _ = try await journal.withClaim(.small, rooms: rooms, clock: { .now }) { _ in
            (.delivered(hasChecksum ? Self.proved : Proof(key: "a", size: 7, method: .size)), ())
        }
        places = FinishPlaces(root: root, settings: nil)
    }

    private static let proved = Proof(
        key: "a", size: 7, method: .sha256,
        content: ContentHash(digest: Checksum.sha256(Array("content".utf8)), partSize: nil))

    func intend(
        _ action: FinishAction, at path: FilePath? = nil, heldUntil: WallTime? = nil, target: FilePath? = nil,
        copy: FilePath? = nil, changed: Int64? = nil
    ) async throws {
        var intent = FinishIntent(
            action: action, privateFile: path ?? privateFile, target: target ?? (action == .archive ? archived : nil),
            heldUntil: heldUntil)
        intent.isMoving = target == nil ? nil : true
        intent.copy = copy?.bytes
        intent.changed = changed
        try await journal.intend(id, try intent.note)
    }

    /// What the finisher makes of it now, as at the next start.
    func dispose() async throws -> DisposalRunner.DisposalEnd {
        var runner = try await runner()
        return try await runner.run()
    }

    func runner() async throws -> DisposalRunner {
        runner(try #require(try await journal.job(id)))
    }

    func runner(_ job: Job) -> DisposalRunner {
        DisposalRunner(journal: journal, places: places, job: job, hashing: pool, roots: RootRegistry())
    }
}

struct Unexpected: Error {}

extension DisposalRunner.DisposalEnd {
    var disposition: String? { if case .done(let text, _, _) = self { text } else { nil } }
    var state: FileState? { if case .done(_, let state, _) = self { state } else { nil } }
    var isWait: Bool { disposition == nil }
}
