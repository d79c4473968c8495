package import InletCore
package import InletLinux
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// Delivers to a destination: Inlet's one seam with many implementations. This comment is the contract;
/// `PipelineContractTests` runs it over every implementation.
///
/// `deliver` makes the bytes of `source` visible under `order.key`, completely or not at all, and returns only with a
/// proof.
/// * The key, the media type and the fields are frozen at admission: every attempt uses the same ones, and delivering
///   twice leaves one object.
/// * The source is read through the given descriptor, by offset, and never held in memory.
/// * Before anything becomes visible the source must still match `order.source`. Otherwise it throws `.sourceChanged`
///   or `.sourceGone`, and nothing is visible under the key.
/// * Everything that the next attempt needs is in the checkpoint *before* a step relies on it.
/// * Cancelling the task ends the attempt within 200 ms, or within a second where a lock must be released. Its
///   checkpoint stays; `abandon` removes its remains.
/// * When `attempt.isStopping` becomes true, no new step begins, running ones may end, and then it throws `.cancelled`.
/// * It never overwrites a different file under the key where the destination can tell.
/// * Errors carry their verdict; an error without one is a defect.
package protocol Pipeline: Sendable {
    /// Delivers, or continues an earlier attempt at the same order.
    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome

    /// Continues without the source, which `path` no longer names, where all its bytes have been sent; nil elsewhere. A
    /// complete upload is then delivered, rather than dropped with what may be the only copy left.
    func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome?

    /// Removes the remains of attempts at `order` from the destination. Idempotent: nothing left is success.
    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError)

    /// The notes of a checkpoint that are still good after `abandon`: a retry continues with them. None of them may
    /// need removing.
    func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]]

    /// The notes of a checkpoint that another agent on another machine continues with, where this one dies or is late: an
    /// attempt that begins with them alone delivers once. They are shown to all agents of the fleet, and read from any of
    /// them:
    /// * Never a secret, nor what only this machine has: paths, and times, because clocks differ.
    /// * Chosen by name, so that a new note stays here until somebody decides otherwise.
    /// * They change with few steps of a delivery, because each change asks the fleet's database.
    /// * Given to itself they stay the same: the next agent hands over what it got.
    /// * An attempt trusts none of them more than an answer of a server.
    func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]]

    /// Whether the destination answers and accepts our credentials; leaves nothing behind.
    /// - Returns: its answer, in a few words.
    func probe() async throws(DeliveryError) -> String
}

extension Pipeline {
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? { nil }

    package func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] { [:] }

    /// Nothing: a successor begins anew.
    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] { [:] }
}

/// The end of an attempt without an error.
package enum DeliveryOutcome: Sendable, Equatable {
    case delivered(Proof)
    /// The destination is working on it; come back then. The worker is free meanwhile, and the delivery continues in
    /// the light lane: nothing sizeable is left to send.
    ///
    /// `saying` describes the destination's work ("generating pictures, 81 %") and is shown as the delivery's reason.
    case waiting(until: WallTime, saying: String? = nil)
}

/// A configured destination: its pipeline, and its limits on parallel work.
package struct Destination: Sendable {
    package var name: String
    package var type: String
    package var pipeline: any Pipeline
    /// Larger files take a worker; others share `connections`.
    package var smallLimit: Int64
    package var connections: Int
    /// Big transfers to this destination at once; nil = the number of workers.
    package var maxInFlight: Int?
    /// Its address as a short checksum: proofs from another address are not claimed for this one. nil = it has none.
    package var address: String?
    /// The host of that address; nil for destinations without a network.
    private(set) var host: String?
    /// The server that receives its requests; nil for destinations without a network.
    var server: (url: HTTPURL, trust: Trust)?
    /// Whether a card is not safe to remove without it (`required`).
    package var isRequired = false
    /// The folder that its keys are relative to; nil for other kinds.
    package var folder: FilePath?
    /// The names in its keys, for files whose route does not say it.
    package var names = NameForm.clean
    /// Whether it can store companions beside their file; a property of the type.
    package var takesSidecars = true
    /// Templates for the destination's own fields, for files whose route sets none.
    package var fields: [String: KeyTemplate] = [:]
    /// The extension of a test object: one that the destination accepts.
    package var testExtension = "txt"
    /// Why it gets no test object; nil where it may get one.
    package var untried: String?
    /// The folder for the results of delivered files; nil for destinations without results.
    package var results: FilePath?
    /// The pin of the server's public key, for destinations that accept one; nil without TLS.
    package var serverPin: (@Sendable () async throws(DeliveryError) -> String?)?
    /// Asks the store which checksums it compares, with tiny objects that are removed again, for `inlet check`; nil where
    /// the configuration decides.
    package var checksumFindings: (@Sendable () async throws(DeliveryError) -> [SettingFinding])?
    /// Deletes the object of a proof and reports it, where the destination allows that.
    package var undo: (@Sendable (Proof) async throws(DeliveryError) -> String)?
    /// For a destination that only registers files: its need of another destination that holds their bytes. nil for
    /// destinations that take the bytes themselves. `isNeeded` tells whether the file at a path below its root, with
    /// its rendered fields, must be there first; the registration itself reads other files.
    package var storage: (destination: String, isNeeded: @Sendable (FilePath, _ fields: [String: String]) -> Bool)?
    /// Its reading of the fields of the file at this path below its root; nil for destinations that add nothing.
    package var reading: (@Sendable (_ path: FilePath, _ fields: [String: String]) -> FieldReading)?
    /// Whether it wants one more delivery for each unit, after the unit's last file there.
    package var closesBatches = false
    /// Returns a token for requests to the destination. The command line asks the running agent for it, so that nobody
    /// else refreshes the agent's token. Given a token that the server has refused, returns another.
    package var accessToken: (@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)?
    /// Called once an hour, even while nothing is delivered: keeps credentials alive that end when unused.
    package var keepAlive: (@Sendable () async throws(DeliveryError) -> Void)?
    /// A warning about such credentials, in the words of `loginWarning`; nil while they are fine.
    package var expiry: (@Sendable (_ now: WallTime) async -> String?)?

    /// - Parameters:
    ///   - server: the same with or without TLS.
    ///   - rest: whatever else distinguishes places there, such as a bucket.
    mutating func setAddress(_ server: HTTPURL, _ rest: String = "") {
        address = Self.address(type, server, rest)
        host = server.host
    }

    mutating func setAddress(_ place: String) { address = Self.address(type, place) }

    /// The address that `setAddress` gives a destination of this type.
    static func address(_ type: String, _ server: HTTPURL, _ rest: String) -> String {
        address(type, "\(server.redacted.drop { $0 != ":" }.drop { ":/".contains($0) })/\(rest)")
    }

    private static func address(_ type: String, _ place: String) -> String {
        var place = place
        while place.hasSuffix("/") { place.removeLast() }
        return String(Checksum.sha256("\(type) \(place)".utf8).hex.prefix(addressLength))
    }

    /// A login that ends unless it is renewed: a person is warned two days before, with time to act.
    ///
    /// - Parameters:
    ///   - time: its last renewal.
    ///   - life: its duration from then.
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

    /// The disks or the server that hold what is delivered, for `CopyCount`; nil for a destination that only registers
    /// files. Blocks.
    package func disks(_ disks: PhysicalDisks) -> Set<String>? {
        if storage != nil { return nil }
        if let folder { return disks.disks(of: folder) }
        return host.map { CopyCount.disks(ofServer: $0, localNames: [ProcessSetup.hostName.lowercased()]) } ?? []
    }

    /// By name, for those that have one.
    package static func addresses(_ destinations: [Destination]) -> [String: String] {
        destinations.reduce(into: [:]) { $0[$1.name] = $1.address }
    }

    /// Every proof has it; it need only distinguish two places of one destination.
    private static let addressLength = 12
}

/// A destination's reading of a file's fields before anything is sent, for people who ask. It holds the decision where
/// a field leaves it open, by the field's name, and why the file would be refused, with the remedy.
package typealias FieldReading = (decided: [String: String], objection: String?)

/// Everything an attempt gets besides the file and the order.
package struct Attempt: Sendable {
    package internal(set) var checkpoint: CheckpointLog
    /// Counts the bytes sent, for progress.
    let meter = TransferMeter()
    private let steps = StepMeter()
    /// The parts of it that wait for a limit.
    let note = ThrottleWaits()
    package let isStopping: @Sendable () -> Bool
    /// The answer to its first request, which went out in a burst.
    let first: FirstAnswer?

    package init(
        checkpoint: CheckpointLog, continuing first: FirstAnswer? = nil, isStopping: @escaping @Sendable () -> Bool
    ) {
        self.checkpoint = checkpoint
        self.first = first
        self.isStopping = isStopping
    }

    /// Bytes sent to the destination so far.
    package var bytesSent: Int64 { meter.bytesSent }

    /// Reports the delivery's progress where bytes do not tell: shown by `status` and in progress lines, stored
    /// nowhere.
    package func report(_ progress: StepProgress) { steps.set(progress) }

    /// The last report; nil where bytes tell everything.
    package var progress: StepProgress? { steps.last }

    /// Whether it is waiting for bytes under a limit now.
    package var isHeld: Bool { note.isHeld }

    /// Runs `body`, whose requests `isHeld` describes.
    package func noting<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        await ThrottleWaits.$current.withValue(note) { await body() }
    }
}

private final class StepMeter: Sendable {
    private let progress = Mutex<StepProgress?>(nil)

    var last: StepProgress? { progress.withLock { $0 } }
    func set(_ progress: StepProgress) { self.progress.withLock { $0 = progress } }
}

/// The durable notes of one delivery, which the journal keeps between attempts.
///
/// `CheckpointName.mayBeVisible` is the one name that the journal knows too: while it exists, the key is never given to
/// another file.
package struct CheckpointLog: Sendable {
    /// The notes at the start of the attempt.
    package let entries: [String: [UInt8]]
    /// Adds or replaces notes; durable when it returns.
    package let put: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    /// Replaces all notes by these, in one step; durable when it returns.
    package let replace: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void

    package init(
        entries: [String: [UInt8]], write: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void,
        replace: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    ) {
        self.entries = entries
        put = write
        self.replace = replace
    }

    /// The checkpoint as an attempt would find it after `replace(entries)`.
    func replaced(with entries: [String: [UInt8]]) -> CheckpointLog {
        CheckpointLog(entries: entries, write: put, replace: replace)
    }

    /// Adds notes of an irreversible step as soon as the journal can be written; gives up only when the task is
    /// cancelled.
    package func putPersistently(_ entries: [String: [UInt8]]) async {
        while true {
            do throws(DeliveryError) {
                return try await put(entries)
            } catch {
                // The journal's watchers report why it cannot be written.
                if Task.isCancelled { return }
            }
            await Task.rest(for: .seconds(1))
        }
    }
}

extension SourceFile {
    /// Checks that it is still the admitted file.
    ///
    /// - Throws: `.sourceGone` when the path names no file, `.sourceChanged` when it names another or the content may
    ///   differ, and an outage of this machine when that is unknown now.
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
                "\(path.display): \(change) since it was admitted; Inlet takes its new content once it is quiet")
        }
    }
}

/// Checksums of sources outside a delivery: for keys that contain one, and for files that were touched later.
package enum SourceDigests {
    /// The SHA-256 of the whole file, read on `pool`.
    ///
    /// - Parameter progress: called at every chunk, to show that a long read is alive.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Digest {
        try await DeliveryError.onTransfer(await Checksum.sha256(of: source, on: pool, progress: progress))
    }

    /// The same for a file that is being copied or sent, right behind that: from the page cache, so that the disk reads
    /// each byte once.
    ///
    /// - Parameter ends: how far the file may be read by now; the whole file once that ends.
    static func sha256(
        of source: SourceFile, behind ends: AsyncStream<Int64>, on pool: BlockingPool
    ) async throws(DeliveryError) -> Digest {
        var hash = RunningHash()
        func advance(to end: Int64) async throws(DeliveryError) {
            hash = try await DeliveryError.onTransfer(await hash.advanced(to: end, of: source, on: pool))
        }
        for await end in ends { try await advance(to: end) }
        try await advance(to: source.opened.size)
        return hash.digest
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

    /// Whether the file still has the proved content, computed as in the proof.
    package static func matches(
        _ content: ContentHash, _ source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Bool {
        try await DeliveryError.onTransfer(
            await Checksum.content(like: content, of: source, on: pool, progress: progress)) == content
    }
}
