import CLinux
import Glibc
import Synchronization
import SystemPackage

/// A thread for one event loop that blocks in a wait of its own, such as `epoll_wait(2)`.
///
/// It blocks every signal: signals for the process go to the threads that wait for them, and a `SIGPIPE` from a
/// library's `write(2)` has no effect.
package final class LoopThread: Sendable {
    private let thread: Mutex<pthread_t?>

    /// Starts a thread that runs `body` once. The kernel shows the first 15 bytes of `name`.
    package init(name: String, body: @escaping @Sendable () -> Void) throws(SystemError) {
        // The new thread inherits the mask, so that no signal can slip in before it has set its own.
        var (all, former) = (sigset_t(), sigset_t())
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        thread = Mutex(try ThreadStart(name, body).begin())
    }

    /// The result of `body` on its own thread, which has ended by then. Blocks.
    static func result<Value: Sendable>(
        name: String, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let outcome = Mutex<Result<Value, SystemError>?>(nil)
        try LoopThread(name: name) {
            let result = Result { () throws(SystemError) in try body() }
            outcome.withLock { $0 = result }
        }.join()
        return try ended(outcome.withLock { $0 })
    }

    /// The same for at most `patience`; nil when it takes longer: the thread then ends by itself, and its result is
    /// dropped.
    package static func result<Value: Sendable>(
        name: String, within patience: Duration, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        let outcome = Mutex<Result<Value, SystemError>?>(nil)
        let waker = try Waker()
        _ = try LoopThread(name: name) {
            let result = Result { () throws(SystemError) in try body() }
            outcome.withLock { $0 = result }
            waker.wake()
        }
        guard try waker.wait(until: .now.advanced(by: patience)) else { return nil }
        return try ended(outcome.withLock { $0 })
    }

    /// Throws where a thread has ended without a result, which none does.
    private static func ended<Value>(_ result: Result<Value, SystemError>?) throws(SystemError) -> Value {
        guard let result else { throw SystemError(call: "pthread_join", code: .noSuchProcess) }
        return try result.get()
    }

    /// Waits for the end of `body`; returns at once when somebody has waited already, and on the thread itself: its
    /// last answer may let go of what it works for. Blocks.
    package func join() {
        let joined = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let joined else { return }
        if joined == pthread_self() { pthread_detach(joined) } else { pthread_join(joined, nil) }
    }

    deinit {
        // Never joined: the thread's resources are freed when its body ends.
        if let left = thread.withLock({ $0 }) { pthread_detach(left) }
    }
}

/// The start of a new thread.
private final class ThreadStart: Sendable {
    private let name: String
    private let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }

    /// Starts it, with a stack of 512 KiB. The caller joins or detaches it.
    func begin() throws(SystemError) -> pthread_t {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, 512 << 10)
        let start = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, Self.main, start.toOpaque())
        if code == 0 { return thread }
        start.release()
        throw SystemError(call: "pthread_create", code: Errno(rawValue: code))
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        guard let context else { return nil }
        let start = Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue()
        inlet_name_thread(start.name)
        start.body()
        return nil
    }
}

/// Threads for calls that block: file reads, fsync, hashing, `poll(2)`. The cooperative pool has one thread per core and
/// must never wait in the kernel.
///
/// Jobs start in the order of their arrival. Threads start when there is work, and end after a while without any, at
/// `shutdown`, or when the last reference to the pool goes. A task that runs with the pool as its preferred executor
/// (`withTaskExecutorPreference`) stays on its threads across awaits, and so do its child tasks.
package final class BlockingPool: TaskExecutor, Sendable {
    private let queue: JobQueue
    private let name: String
    private let threads: Int
    private let idle: Duration
    /// The most recently used come last.
    private let branches = Mutex<[(key: UInt64, pool: BlockingPool)]>([])
    private static let mostBranches = 8

    /// `name` is what `top -H` shows, cut to 15 bytes. A pool of one thread suits a single loop.
    ///
    /// - Parameter idle: how long a thread waits for work.
    package init(name: String, threads: Int, idle: Duration = .seconds(60)) {
        (self.name, self.threads, self.idle) = (name, threads, idle)
        queue = JobQueue(name: name, threads: max(1, threads), idle: idle)
    }

    deinit { queue.close() }

    /// A similar pool for one `key`, a file system for example: where that does not answer, only its own users wait.
    /// Few are kept; an unused one ends.
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

    /// Runs `body` on a thread of the pool, waiting for a free one if needed. Does not react to cancellation: `body`
    /// must.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withTaskExecutorPreference(self) { () async throws(Failure) in try body() }
    }

    /// Lets the threads end once the queue is empty, and returns at once; for any thread. Later work is still done: a
    /// task that hops back to the pool must not hang.
    package func shutdown() { queue.close() }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Only when the system gives no thread at all: late is better than never.
        if !queue.append(job, self) { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}

/// First in, first out, for detached threads that sleep on a condition.
///
/// Unchecked, because pthreads' condition has no counterpart in `Synchronization`: mutable state is only touched
/// between `lock` and `unlock` of `mutex`.
private final class JobQueue: @unchecked Sendable {
    /// A job holds its pool, so that the pool lives until the job returns.
    private typealias QueuedJob = (job: UnownedJob, pool: BlockingPool)

    private let name: String
    private let limit: Int
    private let patience: Duration
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var entries: [QueuedJob] = []
    /// The first job that waits; those before it have been taken.
    private var head = 0
    private var threads = 0
    private var idle = 0
    private var isClosed = false

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
    func append(_ job: UnownedJob, _ pool: BlockingPool) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if idle <= entries.count - head, threads < limit {
            if startThread() { threads += 1 } else if threads == 0 { return false }
        }
        entries.append((job, pool))
        pthread_cond_signal(condition)
        return true
    }

    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// The next job, waiting for one; nil when the calling thread should end.
    private func next() -> QueuedJob? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        var end = deadline()
        var isOver = false
        while true {
            if let entry = takeFirst() { return entry }
            if isClosed || isOver {
                threads -= 1
                return nil
            }
            idle += 1
            isOver = pthread_cond_timedwait(condition, mutex, &end) == ETIMEDOUT
            idle -= 1
        }
    }

    private func takeFirst() -> QueuedJob? {
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

    private func deadline() -> timespec {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let (seconds, attoseconds) = patience.components
        let nanoseconds = now.tv_nsec + Int(attoseconds / 1_000_000_000)
        return timespec(
            tv_sec: now.tv_sec + Int(seconds) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }

    private func startThread() -> Bool {
        do throws(SystemError) {
            let start = ThreadStart(name) { [self] in
                while let (job, pool) = next() { job.runSynchronously(on: pool.asUnownedTaskExecutor()) }
            }
            pthread_detach(try start.begin())
            return true
        } catch {
            // The caller leaves the job to the existing threads, or runs it on its own.
            return false
        }
    }
}
