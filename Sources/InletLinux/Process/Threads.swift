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

/// Threads for calls that block: file reads, fsync, hashing, `poll(2)`. The cooperative pool has one thread per core and
/// must never wait in the kernel.
///
/// Jobs start in the order they came. Threads start when there is work for them and end after a while without any, at
/// `shutdown`, or when the last reference to the pool goes. A task that runs with the pool as its preferred executor
/// (`withTaskExecutorPreference`) stays on its threads across awaits, and so do the child tasks it starts.
package final class BlockingPool: TaskExecutor, Sendable {
    private let queue: JobQueue
    private let name: String
    private let threads: Int
    private let idle: Duration
    /// Those used last come last.
    private let branches = Mutex<[(key: UInt64, pool: BlockingPool)]>([])
    private static let mostBranches = 8

    /// `name` is what `top -H` shows, cut to 15 bytes. A pool of one thread is a home for one loop.
    ///
    /// - Parameter idle: how long a thread waits for work.
    package init(name: String, threads: Int, idle: Duration = .seconds(60)) {
        (self.name, self.threads, self.idle) = (name, threads, idle)
        queue = JobQueue(name: name, threads: max(1, threads), idle: idle)
    }

    deinit { queue.close() }

    /// A pool like this one for what is behind `key`, a file system for example: where that does not answer, only those wait
    /// who want something of it. Few are kept; one that nobody uses any more ends.
    package func branch(_ key: UInt64) -> BlockingPool {
        branches.withLock { branches in
            if let last = branches.last, last.key == key { return last.pool }
            if let place = branches.firstIndex(where: { $0.key == key }) {
                branches.append(branches.remove(at: place))
            } else {
                if branches.count == Self.mostBranches { branches.removeFirst() }
                branches.append((key, BlockingPool(name: name, threads: threads, idle: idle)))
            }
            return branches[branches.count - 1].pool
        }
    }

    /// Runs `body` on a thread of the pool, waiting for a free one if need be. Does not react to cancellation: `body` must.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withTaskExecutorPreference(self) { () async throws(Failure) in try body() }
    }

    /// Lets the threads end once the queue is empty, and returns at once; for any thread. Work that comes later is still
    /// done: a task that hops back to the pool must not hang.
    package func shutdown() { queue.close() }

    package func enqueue(_ job: consuming ExecutorJob) {
        let queued = JobQueue.Entry(job: UnownedJob(job), pool: self)
        // Only when the system gives no thread at all: late is better than never.
        if !queue.append(queued) { queued.run() }
    }
}

/// First in, first out, for detached threads that sleep on a condition.
///
/// Unchecked, because the condition of pthreads has no counterpart in `Synchronization`: `state` is only touched
/// between `lock` and `unlock` of `mutex`.
private final class JobQueue: @unchecked Sendable {
    /// A job holds its pool, so that the pool lives until the job has returned.
    struct Entry: Sendable {
        let job: UnownedJob
        let pool: BlockingPool

        func run() { job.runSynchronously(on: pool.asUnownedTaskExecutor()) }
    }

    private struct State {
        var entries: [Entry] = []
        var head = 0
        var threads = 0
        var idle = 0
        var isClosed = false

        var waiting: Int { entries.count - head }

        mutating func takeFirst() -> Entry? {
            guard head < entries.count else { return nil }
            defer {
                head += 1
                if head == entries.count || head > 1024 {
                    entries.removeFirst(head)
                    head = 0
                }
            }
            return entries[head]
        }
    }

    private let name: String
    private let limit: Int
    private let patience: Duration
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var state = State()

    init(name: String, threads: Int, idle: Duration) {
        self.name = name
        limit = threads
        patience = idle
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// False when no thread runs and none could be started; the entry is then not queued.
    func append(_ entry: Entry) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if state.idle <= state.waiting, state.threads < limit {
            if startThread() { state.threads += 1 } else if state.threads == 0 { return false }
        }
        state.entries.append(entry)
        pthread_cond_signal(condition)
        return true
    }

    func close() {
        pthread_mutex_lock(mutex)
        state.isClosed = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// The next job, waiting for one; nil when the calling thread shall end.
    private func next() -> Entry? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        var end = deadline()
        var isOver = false
        while true {
            if let entry = state.takeFirst() { return entry }
            if state.isClosed || isOver {
                state.threads -= 1
                return nil
            }
            state.idle += 1
            isOver = pthread_cond_timedwait(condition, mutex, &end) == ETIMEDOUT
            state.idle -= 1
        }
    }

    private func deadline() -> timespec {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let (seconds, attoseconds) = patience.components
        let nanoseconds = now.tv_nsec + Int(attoseconds / 1_000_000_000)
        return timespec(
            tv_sec: now.tv_sec + Int(seconds) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }

    private func startThread() -> Bool {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, 512 << 10)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        let context = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { context in
                guard let context else { return nil }
                Unmanaged<JobQueue>.fromOpaque(context).takeRetainedValue().work()
                return nil
            }, context.toOpaque())
        if code != 0 { context.release() }
        return code == 0
    }

    private func work() {
        inlet_name_thread(name)
        while let entry = next() { entry.run() }
    }
}
