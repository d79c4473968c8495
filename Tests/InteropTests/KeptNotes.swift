import Foundation
import InletCore
import Synchronization
import SystemPackage

@testable import InletPipelines

/// Notes of a delivery; in a file, where a process shall leave them to the next.
final class KeptNotes: Sendable {
    private struct State {
        var entries: [String: [UInt8]]
        var puts: [Set<String>] = []
    }

    private let file: FilePath?
    private let state: Mutex<State>

    init(_ file: FilePath?) {
        self.file = file
        let kept = file.flatMap { try? Data(contentsOf: URL(fileURLWithPath: $0.string)) }
        let entries = kept.flatMap { try? JSONDecoder().decode([String: [UInt8]].self, from: $0) }
        state = Mutex(State(entries: entries ?? [:]))
    }

    var entries: [String: [UInt8]] { state.withLock { $0.entries } }

    /// The names in each put of this process.
    var puts: [Set<String>] { state.withLock { $0.puts } }

    /// - Parameter noted: runs when notes are durable.
    func attempt(noted: @escaping @Sendable (Set<String>) -> Void = { _ in }) -> Attempt {
        let log = CheckpointLog(
            entries: entries,
            write: { notes throws(DeliveryError) in
                self.change { $0.merge(notes) { $1 } }
                self.state.withLock { $0.puts.append(Set(notes.keys)) }
                noted(Set(notes.keys))
            },
            replace: { notes throws(DeliveryError) in
                self.change { $0 = notes }
                self.state.withLock { $0.puts.append(Set(notes.keys)) }
                noted(Set(notes.keys))
            })
        return Attempt(checkpoint: log, isStopping: { false })
    }

    private func change(_ body: (inout [String: [UInt8]]) -> Void) {
        state.withLock { state in
            body(&state.entries)
            guard let file, let encoded = try? JSONEncoder().encode(state.entries) else { return }
            try? encoded.write(to: URL(fileURLWithPath: file.string), options: .atomic)
        }
    }
}
