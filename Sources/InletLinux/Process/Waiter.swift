internal import Synchronization

/// One wait of one task: it ends when it is resumed or when the task is cancelled, whichever comes first.
///
/// Keep the waiters in a `Mutex` together with the state that they wait for. While holding it, decide with `take` which
/// task continues: its place in line goes to a task that accepts it, or to the next. After releasing it, call the
/// closure that `take` returned. An executor without a free thread runs the task at once on the resuming thread, and
/// the task may want the same lock.
package final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case expected
        case waiting(CheckedContinuation<Value?, Never>)
        case ended(Value?)
    }

    private let state = Mutex(State.expected)

    package init() {}

    /// The value that resumes it, possibly given before; nil when the task is cancelled first. Call it once.
    package func wait() async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let before = state.withLock { state in
                    let before = state
                    if case .expected = before { state = .waiting(continuation) }
                    return before
                }
                if case .ended(let value) = before { continuation.resume(returning: value) }
            }
        } onCancel: {
            end(nil)?()
        }
    }

    /// Ends the wait and lets the task continue. Do not call it while holding a lock that the task may want.
    ///
    /// - Parameter value: evaluated only when it is used.
    /// - Returns: false where the wait has already ended.
    @discardableResult
    package func resume(with value: @autoclosure () -> Value) -> Bool {
        guard let goOn = end(value()) else { return false }
        goOn()
        return true
    }

    /// Ends the wait with `value`. The task continues when the returned closure is called, which must happen once no
    /// lock is held.
    ///
    /// - Parameter value: evaluated only when it is used.
    /// - Returns: nil where the wait has already ended.
    package func take(_ value: @autoclosure () -> Value) -> (@Sendable () -> Void)? { end(value()) }

    /// Resumes nothing itself: a cancellation takes the lock here while it holds the task's own.
    private func end(_ value: @autoclosure () -> Value?) -> (@Sendable () -> Void)? {
        state.withLock { state in
            let before = state
            if case .ended = before { return nil }
            let told = value()
            state = .ended(told)
            guard case .waiting(let continuation) = before else { return {} }
            return { continuation.resume(returning: told) }
        }
    }
}

extension Task where Success == Never, Failure == Never {
    /// Sleeps. - Returns: false when the task is cancelled, then at once.
    @discardableResult
    package static func rest(for time: Duration, tolerance: Duration? = nil) async -> Bool {
        do { try await sleep(for: time, tolerance: tolerance) } catch { return false }
        return true
    }
}

/// Lets one task at a time work on each name; the others wait in order of arrival.
///
/// For things that are looked up first and created when missing: two tasks at once would both create them.
package final class KeyedMutex: Sendable {
    /// For things created at servers, across the process: several destinations, and those of a configuration that was
    /// just replaced, may lead to one server.
    package static let shared = KeyedMutex()

    /// The names in use, with the tasks that wait for them.
    private let lines = Mutex<[String: [Waiter<Void>]]>([:])

    package init() {}

    /// - Returns: nil when the task is cancelled before its turn.
    @discardableResult
    package func holding<Value, Failure>(
        _ name: String, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value? {
        guard await take(name) else { return nil }
        defer { leave(name) }
        return try await body()
    }

    package func waiting(for name: String) -> Int { lines.withLock { $0[name]?.count ?? 0 } }

    package func isTaken(_ name: String) -> Bool { lines.withLock { $0[name] != nil } }

    private func take(_ name: String) async -> Bool {
        if Task.isCancelled { return false }
        let waiter = Waiter<Void>()
        let isFree = lines.withLock { lines in
            guard lines[name] != nil else {
                lines[name] = []
                return true
            }
            lines[name]?.append(waiter)
            return false
        }
        if isFree { return true }
        if await waiter.wait() != nil { return true }
        lines.withLock { $0[name]?.removeAll { $0 === waiter } }
        return false
    }

    private func leave(_ name: String) {
        let goOn: (@Sendable () -> Void)? = lines.withLock { lines in
            while lines[name]?.isEmpty == false {
                if let goOn = lines[name]?.removeFirst().take(()) { return goOn }
            }
            lines[name] = nil
            return nil
        }
        goOn?()
    }
}
