internal import FoundationEssentials
package import InletCore
internal import InletTransfer
internal import Synchronization

/// What an attempt is given beside the file and the order.
package struct Attempt: Sendable {
    package internal(set) var checkpoint: CheckpointLog
    /// Counts the bytes that went out, for progress.
    let meter = TransferMeter()
    private let steps = StepMeter()
    /// What of it waits for a limit.
    let note = HoldNote()
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
        await HoldNote.$current.withValue(note) { await body() }
    }
}

private final class StepMeter: Sendable {
    private let progress = Mutex<StepProgress?>(nil)

    var last: StepProgress? { progress.withLock { $0 } }
    func set(_ progress: StepProgress) { self.progress.withLock { $0 = progress } }
}

/// The durable notes of one delivery, kept by the journal between attempts.
///
/// `CheckpointNote.mayBeVisible` is the one name that the journal knows too: while it is there, the key is never given to
/// another file.
package struct CheckpointLog: Sendable {
    /// The notes as they were when the attempt began.
    package let entries: [String: [UInt8]]
    private let write: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    private let swap: @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void

    package init(
        entries: [String: [UInt8]], write: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void,
        replace: @escaping @Sendable ([String: [UInt8]]) async throws(DeliveryError) -> Void
    ) {
        self.entries = entries
        self.write = write
        swap = replace
    }

    /// Adds or replaces notes; durable when it returns.
    package func put(_ entries: [String: [UInt8]]) async throws(DeliveryError) { try await write(entries) }

    /// The log as an attempt would find it after `replace(with: entries)`.
    func replaced(with entries: [String: [UInt8]]) -> CheckpointLog {
        CheckpointLog(entries: entries, write: write, replace: swap)
    }

    /// Adds notes of something that cannot be taken back, as soon as the journal can be written; gives up only when the task
    /// is cancelled.
    package func putPersistently(_ entries: [String: [UInt8]]) async {
        while true {
            do throws(DeliveryError) {
                return try await write(entries)
            } catch {
                // What keeps the journal from being written is said by those who watch it.
                if Task.isCancelled { return }
            }
            // Ends early only when the task is cancelled.
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// Forgets all notes and remembers these, at once; durable when it returns.
    package func replace(with entries: [String: [UInt8]]) async throws(DeliveryError) { try await swap(entries) }
}

enum JSONNote {
    static func read<Value: Decodable>(_ note: [UInt8]?) -> Value? {
        // A note of another version is none: what it would say is asked or sent again.
        note.flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }

    static func write(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers, booleans and texts always encode.
        return (try? encoder.encode(value)).map { Array($0) } ?? []
    }
}
