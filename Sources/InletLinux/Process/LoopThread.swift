import CLinux
import Glibc
import Synchronization
import SystemPackage

/// A thread for one event loop that blocks in a foreign library's own wait, e.g. `curl_multi_poll`.
///
/// It blocks every signal: those sent to the process go to the threads that wait for them, and a `SIGPIPE` that a
/// library's `write(2)` raises stays without effect.
package final class LoopThread: Sendable {
    private let thread: Mutex<pthread_t?>

    private static let stackSize = 512 * 1024

    /// Starts a thread that runs `body` once. The kernel shows the first 15 bytes of `name`.
    package init(name: String, body: @escaping @Sendable () -> Void) throws(SystemError) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackSize)
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        // The new thread inherits the mask, so that not one signal can slip in before it has set its own.
        var (all, former) = (sigset_t(), sigset_t())
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &former)
        var created = pthread_t()
        let code = pthread_create(&created, &attributes, Self.main, start.toOpaque())
        pthread_sigmask(SIG_SETMASK, &former, nil)
        guard code == 0 else {
            start.release()
            throw SystemError(call: "pthread_create", path: nil, code: Errno(rawValue: code))
        }
        thread = Mutex(created)
    }

    /// What `body` comes to on a thread of its own, which has ended then. Blocks.
    static func result<Value: Sendable>(
        name: String, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let outcome = Outcome<Value>()
        try LoopThread(name: name) {
            do throws(SystemError) {
                let value = try body()
                outcome.result.withLock { $0 = .success(value) }
            } catch {
                outcome.result.withLock { $0 = .failure(error) }
            }
        }.join()
        return try outcome.result.withLock { $0 }.get()
    }

    /// The same for at most `patience`; nil when it takes longer: the thread ends by itself then, and what it came to is let go.
    package static func result<Value: Sendable>(
        name: String, within patience: Duration, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        let (outcome, waker) = (Outcome<Value>(), try Waker())
        _ = try LoopThread(name: name) {
            do throws(SystemError) {
                let value = try body()
                outcome.result.withLock { $0 = .success(value) }
            } catch {
                outcome.result.withLock { $0 = .failure(error) }
            }
            waker.wake()
        }
        guard try waker.wait(until: .now.advanced(by: patience)) else { return nil }
        return try outcome.result.withLock { $0 }.get()
    }

    private final class Outcome<Value: Sendable>: Sendable {
        /// What it is when a thread has ended without saying anything, which none does.
        let result = Mutex<Result<Value, SystemError>>(
            .failure(SystemError(call: "pthread_join", path: nil, code: .noSuchProcess)))
    }

    /// Waits for the end of `body`; at once when somebody has waited already. Not to be called from `body`. Blocks.
    package func join() {
        let joined = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let joined { pthread_join(joined, nil) }
    }

    deinit {
        // Never joined: the thread's resources go when its body ends.
        if let left = thread.withLock({ $0 }) { pthread_detach(left) }
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        guard let context else { return nil }
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        inlet_name_thread(start.name)
        start.body()
        return nil
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
