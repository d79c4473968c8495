package import InletCore
package import InletLinux
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// Where files go: the one seam of Inlet with many implementations. This comment is the contract;
/// `PipelineContractTests` runs it over every implementation.
///
/// `deliver` makes the bytes of `source` visible under `order.key`, whole or not at all, and returns only with a proof.
/// * The key, the media type and the fields were frozen at admission: every attempt uses the same ones, and delivering
///   twice leaves one object.
/// * The source is read through the given descriptor, by offset, and never held in memory.
/// * Before anything becomes visible the source must still be what `order.source` says; otherwise `.sourceChanged` or
///   `.sourceGone` is thrown, and then nothing is visible under the key.
/// * What the next attempt needs is put in the checkpoint *before* the step that it remembers is relied upon.
/// * Cancelling the task ends the attempt within 200 ms; within a second where a lock has to be given back. Its checkpoint
///   stays; `abandon` removes what it left.
/// * When `attempt.isStopping` turns true, no new step begins; running ones may end; then `.cancelled` is thrown.
/// * A different file that is under the key already is never overwritten where the destination can tell.
/// * Errors carry their verdict; an error without one is a defect.
package protocol Pipeline: Sendable {
    /// Delivers, or goes on with an earlier attempt at the same order.
    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome

    /// Goes on without the source, which `path` does not name any more, where all its bytes have left; nil elsewhere.
    /// What was sent whole is then delivered, rather than dropped with the only copy that may be left.
    func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome?

    /// Removes what attempts at `order` left at the destination. Idempotent: nothing left is success.
    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError)

    /// Of a checkpoint whose rest `abandon` has removed, the notes that are still good: a retry goes on with them. Nothing of
    /// them may need removing.
    func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]]

    /// Whether the destination answers and takes our credentials; leaves nothing behind.
    /// - Returns: what it said, in a few words.
    func probe() async throws(DeliveryError) -> String
}

extension Pipeline {
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? { nil }

    package func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] { [:] }
}

/// How an attempt ended without an error.
package enum DeliveryOutcome: Sendable, Equatable {
    case delivered(Proof)
    /// The destination works on it; come back then. The worker is free meanwhile, and the delivery goes on in the light
    /// lane: nothing of size is left to send.
    ///
    /// `saying` is what the destination is doing ("generating pictures, 81 %"); it is shown as the delivery's reason.
    case waiting(until: WallTime, saying: String? = nil)
}

/// A configured destination: its pipeline, and how much of it may run at once.
package struct Destination: Sendable {
    package var name: String
    package var type: String
    package var pipeline: any Pipeline
    /// Files larger than this take a worker; others share `connections`.
    package var smallLimit: Int64
    package var connections: Int
    /// Big transfers to this destination at once; nil = as many as there are workers.
    package var maxInFlight: Int?
    /// Where it is, as a short sum: what was proved at another address is not claimed for this one. nil = it has none to tell.
    package var address: String?
    /// The server that its requests go to; nil for destinations that need no network.
    var server: (url: HTTPURL, trust: Trust)?
    /// The folder that its keys are paths below; nil for destinations that are none.
    package var folder: FilePath?
    /// Whether companions of a file can be stored beside it; the type's.
    package var takesSidecars = true
    /// Templates for the destination's own fields, for files that no route gave them to.
    package var fields: [String: KeyTemplate] = [:]
    /// The extension of a test object: one that the destination takes.
    package var testExtension = "txt"
    /// Why nothing is sent there just to try it; nil where a test object may be.
    package var untried: String?
    /// The folder for what it gives back of what it was sent; nil for destinations that give nothing.
    package var results: FilePath?
    /// The pin of the server's public key, for destinations that can be told one; nil without TLS.
    package var serverPin: (@Sendable () async throws(DeliveryError) -> String?)?
    /// Deletes what a proof is about, and says so, where the destination lets us.
    package var undo: (@Sendable (Proof) async throws(DeliveryError) -> String)?
    /// What a destination that only registers files needs of another one, which holds their bytes; nil for destinations that
    /// take the bytes themselves. `isNeeded` tells whether the file at a path below its root, with its rendered fields, must be
    /// there first; others are read by the registration itself.
    package var storage: (destination: String, isNeeded: @Sendable (FilePath, _ fields: [String: String]) -> Bool)?
    /// What it takes the fields of the file at this path below its root to mean; nil for destinations that add nothing.
    package var reading: (@Sendable (_ path: FilePath, _ fields: [String: String]) -> FieldReading)?
    /// Whether it wants one more delivery for each unit, after those of all the unit's files to it have ended.
    package var closesBatches = false
    /// Gives a token for requests to the destination; the command line asks the running agent for it, so that nobody else
    /// refreshes what the agent uses. Given a token that the server has refused, another one.
    package var accessToken: (@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)?
    /// Called once an hour, also while nothing is delivered: keeps credentials alive that end when they are not used.
    package var keepAlive: (@Sendable () async throws(DeliveryError) -> Void)?
    /// What to say of such credentials, as `loginWarning` words it; nil while all is well.
    package var expiry: (@Sendable (_ now: WallTime) async -> String?)?

    /// - Parameters:
    ///   - server: reached with or without TLS, it is the same one.
    ///   - rest: what else tells one place there from another, such as a bucket.
    mutating func setAddress(_ server: HTTPURL, _ rest: String = "") {
        let place = server.redacted.drop { $0 != ":" }.drop { ":/".contains($0) }
        setAddress("\(place)/\(rest)")
    }

    mutating func setAddress(_ place: String) {
        var place = place
        while place.hasSuffix("/") { place.removeLast() }
        address = String(Checksum.sha256("\(type) \(place)".utf8).hex.prefix(Self.addressLength))
    }

    /// A login that ends when it is not renewed: a person hears of it two days before, while there is time to do something.
    ///
    /// - Parameters:
    ///   - time: when it was last renewed.
    ///   - life: how long it lasts from then.
    package static func loginWarning(
        renewedAt time: WallTime, lasts life: Duration, remedy: String, now: WallTime
    ) -> String? {
        func days(_ duration: Duration) -> Int64 { duration.components.seconds / 86_400 }
        let age = now - time
        guard age > life - .seconds(2 * 86_400) else { return nil }
        return
            "the login was last renewed \(days(age)) days ago, and ends after \(days(life)) days without: "
            + "see why it cannot be renewed, or \(remedy)"
    }

    /// By their names, of those that have one.
    package static func addresses(_ destinations: [Destination]) -> [String: String] {
        destinations.reduce(into: [:]) { $0[$1.name] = $1.address }
    }

    /// Each proof has it; two places of one destination are all that it must tell apart.
    private static let addressLength = 12
}

/// What a destination makes of a file's fields before anything is sent, for people who ask beforehand: what was decided where a
/// field leaves it open, by the field's name, and why the file would be refused, and what to do about it.
package typealias FieldReading = (decided: [String: String], objection: String?)

/// What an attempt is given beside the file and the order.
package struct Attempt: Sendable {
    package internal(set) var checkpoint: CheckpointLog
    /// Counts the bytes that went out, for progress.
    let meter = TransferMeter()
    private let steps = StepMeter()
    /// What of it waits for a limit.
    let note = ThrottleWaits()
    package let isStopping: @Sendable () -> Bool

    package init(checkpoint: CheckpointLog, isStopping: @escaping @Sendable () -> Bool) {
        self.checkpoint = checkpoint
        self.isStopping = isStopping
    }

    /// Bytes that have left for the destination so far.
    package var bytesSent: Int64 { meter.bytesSent }

    /// Says how far the delivery is, where bytes do not tell: shown by `status` and in progress lines, kept nowhere.
    package func report(_ progress: StepProgress) { steps.set(progress) }

    /// What was reported last; nil where bytes tell all.
    package var progress: StepProgress? { steps.last }

    /// Whether it waits for bytes under a limit at this moment.
    package var isHeld: Bool { note.isHeld }

    /// Runs `body`, whose requests `isHeld` is about.
    package func noting<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        await ThrottleWaits.$current.withValue(note) { await body() }
    }
}

private final class StepMeter: Sendable {
    private let progress = Mutex<StepProgress?>(nil)

    var last: StepProgress? { progress.withLock { $0 } }
    func set(_ progress: StepProgress) { self.progress.withLock { $0 = progress } }
}

/// The durable notes of one delivery, kept by the journal between attempts.
///
/// `CheckpointName.mayBeVisible` is the one name that the journal knows too: while it is there, the key is never given to
/// another file.
package struct CheckpointLog: Sendable {
    /// The notes as they were when the attempt began.
    package let entries: [String: [UInt8]]
    /// Adds or replaces notes; durable when it returns.
    package let put: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    /// Forgets all notes and remembers these, at once; durable when it returns.
    package let replace: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void

    package init(
        entries: [String: [UInt8]], write: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void,
        replace: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    ) {
        self.entries = entries
        put = write
        self.replace = replace
    }

    /// The log as an attempt would find it after `replace(entries)`.
    func replaced(with entries: [String: [UInt8]]) -> CheckpointLog {
        CheckpointLog(entries: entries, write: put, replace: replace)
    }

    /// Adds notes of something that cannot be taken back, as soon as the journal can be written; gives up only when the task
    /// is cancelled.
    package func putPersistently(_ entries: [String: [UInt8]]) async {
        while true {
            do throws(DeliveryError) {
                return try await put(entries)
            } catch {
                // What keeps the journal from being written is said by those who watch it.
                if Task.isCancelled { return }
            }
            await Task.rest(for: .seconds(1))
        }
    }
}

extension SourceFile {
    /// Checks that it is still what was admitted.
    ///
    /// - Throws: `.sourceGone` when the path names no file, `.sourceChanged` when it names another one or the content may
    ///   differ, and an outage of this machine's when that cannot be known now.
    func requireUnchanged(since order: DeliveryOrder) throws(DeliveryError) {
        let (naming, now) = try DeliveryError.onReading((self.naming(), self.identity()))
        switch naming {
        case .it: break
        case .another:
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(path.display): replaced before it was delivered; Inlet takes the new file when it is complete")
        case .nothing:
            throw DeliveryError(.sourceGone, .sourceGone, "\(path.display): removed before it was delivered")
        }
        guard now.isUntouched(since: order.source) || isRenumbered(now, since: order.source) else {
            let change = now.size == order.source.size ? "was modified" : "grew or shrank"
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(path.display): \(change) since it was admitted; its new content is taken when it is quiet")
        }
    }
}

/// Checksums of sources outside a delivery: for keys that contain one, and for files that were touched after theirs.
package enum SourceDigests {
    /// The SHA-256 of the whole file, read on `pool`.
    ///
    /// - Parameter progress: called at every chunk, to show that a long read is alive.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Digest {
        try await DeliveryError.onTransfer(await Checksum.sha256(of: source, on: pool, progress: progress))
    }

    /// The checksums `algorithms` of the whole file, in one read on `pool`; `progress` as `sha256(of:)` calls it.
    package static func digests(
        _ algorithms: Set<Digest.Algorithm>, of source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> [Digest] {
        let sums = try await DeliveryError.onTransfer(
            await Checksum.sums(
                algorithms, of: source, offset: 0, length: source.opened.size, on: pool, progress: progress))
        return algorithms.compactMap { sums[$0] }
    }

    /// Whether the file still has the content that was proved, computed in the way it was proved.
    package static func matches(
        _ content: ContentHash, _ source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Bool {
        try await DeliveryError.onTransfer(
            await Checksum.content(like: content, of: source, on: pool, progress: progress)) == content
    }
}
