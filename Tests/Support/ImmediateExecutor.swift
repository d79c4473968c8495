/// Runs what is resumed at once, on the thread of who resumes it: as a `BlockingPool` does that the system gives no thread.
package final class ImmediateExecutor: TaskExecutor {
    /// A task's preference does not keep its executor alive everywhere; this one lives as long as the process.
    package static let shared = ImmediateExecutor()

    private init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
}
