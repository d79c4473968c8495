internal import Synchronization

/// One wait of one task: it ends when it is resumed, or when the task is cancelled, whichever comes first.
///
/// Whoever has tasks wait keeps their waiters in a `Mutex` with what they wait for. While it holds that, it decides with `take`
/// who goes on: a place in a line is then given to somebody who takes it, or to the next. Once it has let go, it calls what `take`
/// returned: an executor that gets no thread runs the task at once on the thread of who resumes it, and the task may want the
/// same lock.
package final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case expected
        case waiting(CheckedContinuation<Value?, Never>)
        case ended(Value?)
    }

    private let state = Mutex(State.expected)

    package init() {}

    /// What it is resumed with, which may have been before; nil when the task is cancelled first. To be called once.
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

    /// Ends the wait and lets the task go on: not to be called while a lock is held that the task may want.
    ///
    /// - Parameter value: made only where it is taken.
    /// - Returns: false where the wait has ended already.
    @discardableResult
    package func resume(with value: @autoclosure () -> Value) -> Bool {
        guard let goOn = end(value()) else { return false }
        goOn()
        return true
    }

    /// Ends the wait with `value`; the task stays where it is until what is returned is called, which has to be done once no lock
    /// is held.
    ///
    /// - Parameter value: made only where it is taken.
    /// - Returns: nil where the wait has ended already.
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

/// Lets one task at a time work on each name; the others wait in the order in which they came.
///
/// For what is looked for first, and made where there is none: two at once would both make it.
package final class KeyedMutex: Sendable {
    /// For what is made at servers, in the whole process: several destinations, and the ones of a configuration that was just
    /// replaced, may lead to one server.
    package static let shared = KeyedMutex()

    /// The names that somebody has, with those who wait for them.
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
