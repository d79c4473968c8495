internal import ServiceLifecycle
internal import Synchronization

/// Runs what a value of the configuration asks for; when that is replaced, the work for the old one is cancelled, and begun
/// for the new one.
final class Renewed<Value: Sendable>: Service {
    private let value: Mutex<Value>
    private let signal = WakeSignal()
    private let work: @Sendable (Value) async -> Void

    /// - Parameter work: ends when its task is cancelled. Where it has nothing to do it may end at once.
    init(_ value: Value, _ work: @escaping @Sendable (Value) async -> Void) {
        self.value = Mutex(value)
        self.work = work
    }

    /// What it works for, or will in a moment.
    var current: Value { value.withLock(\.self) }

    /// - Returns: what it worked for.
    @discardableResult
    func replace(_ new: Value) -> Value {
        let old = value.withLock { value in
            defer { value = new }
            return value
        }
        signal.raise()
        return old
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let value = self.value.withLock(\.self)
                await withDiscardingTaskGroup { group in
                    group.addTask { await self.work(value) }
                    await self.signal.wait(until: nil)
                    group.cancelAll()
                }
            }
        }
    }
}
