import Glibc
package import SystemPackage

/// A program run to its end, without a shell and in its own process group. It gets only the three standard descriptors,
/// default signal handling, and none of our environment.
package struct ChildProcess: Sendable {
    /// How it ended.
    package enum End: Sendable, Equatable {
        case exited(Int32)
        case signalled(Int32)
        /// It exceeded its time limit and was ended.
        case timedOut
        /// It exceeded its time limit and could not be ended: it may still run (another user's rights, a hanging disk).
        case stuck
        /// We had to stop, and ended it if that was possible.
        case cancelled
    }

    package struct Outcome: Sendable, Equatable {
        package var end: End
        /// The end of its standard error, at most `mostErrors` bytes. Its standard output is dropped.
        package var errors: [UInt8]

        package init(end: End, errors: [UInt8]) { (self.end, self.errors) = (end, errors) }
    }

    package static let mostErrors = 4096

    /// The program's full path, then its arguments.
    package var arguments: [String]
    package var environment: [(name: String, value: [UInt8])]
    /// Added to our own nice value (setpriority(2)), 0 to 19: the higher, the more it gives way to others.
    package var niceness: Int32 = 0
    /// The largest file it may write (RLIMIT_FSIZE), in bytes; nil = any.
    package var largestFile: Int64?
    /// Whether the kernel ends it before all others when memory runs short (`oom_score_adj`, proc(5)).
    package var yieldsMemory = false
    /// Whether the rest of its process group is ended when it ends by itself; otherwise the rest may run on.
    package var leavesNobody = false
    /// The only folder in which it may write, by a kernel with Landlock; nil = anywhere. The helper of a confined agent
    /// decides that itself.
    package var writesTo: (folder: FilePath, base: FilePath)?
    /// Written to its standard input, then closed. A program that does not read it is fine.
    package var input: [UInt8]
    package var timeout: Duration
    /// From SIGTERM to SIGKILL.
    package var grace: Duration
    /// From SIGKILL to giving up. It is collected when a later one ends.
    package var patience: Duration

    package init(
        _ arguments: [String], environment: [(name: String, value: [UInt8])] = [], input: [UInt8] = [],
        timeout: Duration, grace: Duration = .seconds(5), patience: Duration = .seconds(5)
    ) {
        self.arguments = arguments
        self.environment = environment
        self.input = input
        self.timeout = timeout
        self.grace = grace
        self.patience = patience
    }

    /// Whether we may run the file at `path` (`access(2)`, X_OK). A folder can be "executable" too, but does not count.
    package static func isExecutable(_ path: FilePath) -> Bool {
        path.withPlatformString { text in
            var status = stat()
            return stat(text, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(text, X_OK) == 0
        }
    }

    /// Runs it by the helper, and waits on a thread of `pool`. Cancelling the task ends it as a time-out does.
    ///
    /// - Throws: when it could not be started.
    package func run(on pool: BlockingPool) async throws(SystemError) -> Outcome {
        let waker = try Waker()
        let result: Result<Outcome, SystemError> = await withTaskCancellationHandler {
            await pool.run {
                Result { () throws(SystemError) in
                    try RunningChild.run(self, waker, on: .shared())
                }
            }
        } onCancel: {
            waker.wake()
        }
        return try result.get()
    }
}

/// The search path for programs named without a path.
package enum ProgramFinder {
    /// `PATH`, or a shell's default where it is not set.
    package static var path: String {
        ProcessSetup.environment("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// The full path of a program, as a shell would find it; nil where there is none that we may run.
    package static func find(_ word: String) -> FilePath? {
        if word.contains("/") { return ChildProcess.isExecutable(FilePath(word)) ? FilePath(word) : nil }
        return path.split(separator: ":").lazy.map { FilePath(String($0)).appending(word) }
            .first { $0.isAbsolute && ChildProcess.isExecutable($0) }
    }
}
