import InletCore
import InletPipelines
import Synchronization

/// The notes of one delivery, kept between attempts as the journal keeps them; remembers every call.
final class Notes: Sendable {
    typealias Entries = [String: [UInt8]]

    private struct State {
        var entries: Entries
        var puts: [Set<String>] = []
    }

    private let state: Mutex<State>

    init(_ entries: Entries = [:]) { state = Mutex(State(entries: entries)) }

    var entries: Entries { state.withLock { $0.entries } }

    /// As the journal leaves them when the delivery has failed and what it left was cleared away.
    func fail() {
        state.withLock { state in state.entries = state.entries.filter { $0.key == CheckpointNote.mayBeVisible } }
    }

    /// The names in each put, in their order.
    var puts: [Set<String>] { state.withLock { $0.puts } }

    /// How many parts the notes call proved.
    var provedParts: Int { entries.keys.count { $0.hasPrefix("part:") } }

    /// An attempt on these notes. `noted` runs when a put is durable, before the pipeline goes on. Once `isDead`, as a killed
    /// process is, nothing more is noted.
    func attempt(
        noted: @escaping @Sendable (Set<String>) async -> Void = { _ in },
        isStopping: @escaping @Sendable () -> Bool = { false }, isDead: @escaping @Sendable () -> Bool = { false }
    ) -> Attempt {
        let log = CheckpointLog(
            entries: entries,
            write: { entries throws(DeliveryError) in
                if isDead() { throw DeliveryError(.cancelled, .cancelled, "killed") }
                self.state.withLock { state in
                    state.entries.merge(entries) { $1 }
                    state.puts.append(Set(entries.keys))
                }
                await noted(Set(entries.keys))
            },
            replace: { entries throws(DeliveryError) in
                if isDead() { throw DeliveryError(.cancelled, .cancelled, "killed") }
                self.state.withLock { state in
                    state.entries = entries
                    if !entries.isEmpty { state.puts.append(Set(entries.keys)) }
                }
                if !entries.isEmpty { await noted(Set(entries.keys)) }
            })
        return Attempt(checkpoint: log, isStopping: isStopping)
    }
}

/// Something that a test sets once and a pipeline reads.
final class Switch: Sendable {
    private let value = Atomic<Bool>(false)

    var isOn: Bool { value.load(ordering: .acquiring) }
    func turnOn() { value.store(true, ordering: .releasing) }
}

/// What a listing gave.
final class Listed: Sendable {
    private let objects = Mutex<[ListedObject]>([])

    var keys: [String] { objects.withLock { $0.map(\.key) } }
    func add(_ page: [ListedObject]) { objects.withLock { $0 += page } }
}

/// Numbers that a test's closures saw.
final class Seen: Sendable {
    private let values = Mutex<[Int]>([])

    var all: [Int] { values.withLock { $0 } }
    func append(_ value: Int) { values.withLock { $0.append(value) } }
}

/// What a test's closures saw, in order.
final class Listing<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    var all: [Value] { values.withLock { $0 } }
    func add(_ value: Value) { values.withLock { $0.append(value) } }
}
