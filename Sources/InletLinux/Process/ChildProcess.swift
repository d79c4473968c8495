import CLinux
import Glibc
package import SystemPackage

/// A program that is run to its end: without a shell, in a process group of its own, with no descriptor of ours but the
/// three standard ones, no signal of ours blocked or ignored, and nothing of our environment.
package struct ChildProcess: Sendable {
    /// How it ended.
    package enum End: Sendable, Equatable {
        case exited(Int32)
        case signalled(Int32)
        /// It took longer than it may, and was ended.
        case timedOut
        /// It took longer than it may, and could not be ended: it may run on (another user's rights, a disk that hangs).
        case stuck
        /// We were asked to stop, and ended it, if that could be done.
        case cancelled
    }

    package struct Outcome: Sendable, Equatable {
        package var end: End
        /// The end of what it wrote to standard error, at most `mostErrors` bytes. What it wrote to standard output is dropped.
        package var errors: [UInt8]

        package init(end: End, errors: [UInt8]) { (self.end, self.errors) = (end, errors) }
    }

    package static let mostErrors = 4096

    /// The program's whole path, then its arguments.
    package var arguments: [String]
    package var environment: [(name: String, value: [UInt8])]
    /// Added to our own nice value (setpriority(2)), 0 to 19: how much it gives way to others.
    package var niceness: Int32 = 0
    /// The largest file that it may write (RLIMIT_FSIZE), in bytes; nil = any.
    package var largestFile: Int64?
    /// Whether the kernel, short of memory, ends it before all others (`oom_score_adj`, proc(5)).
    package var yieldsMemory = false
    /// Whether what is left of its process group is ended when it has ended by itself; otherwise that may run on.
    package var leavesNobody = false
    /// Where alone it may write, as far as the kernel can hold it to that (`Landlock.holdWrites`); nil = anywhere.
    var writesTo: (folder: FilePath, base: FilePath)?
    /// Written to its standard input, then closed. A program that does not read it is fine.
    package var input: [UInt8]
    package var timeout: Duration
    /// From SIGTERM to SIGKILL.
    package var grace: Duration
    /// From SIGKILL to when it is left alone. It is collected when a later one ends.
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

    /// Whether we may run the file at `path` (`access(2)`, X_OK): a folder can be "executable" too, and is not meant.
    package static func isExecutable(_ path: FilePath) -> Bool {
        path.withPlatformString { text in
            var status = stat()
            return stat(text, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(text, X_OK) == 0
        }
    }

    /// Runs it on a thread of `pool`, by the process host where this process has one. The task's cancellation ends it as a
    /// time-out does.
    ///
    /// - Throws: when it could not be started.
    package func run(on pool: BlockingPool) async throws(SystemError) -> Outcome {
        let waker = try Waker()
        let result: Result<Outcome, SystemError> = await withTaskCancellationHandler {
            await pool.run {
                Result { () throws(SystemError) in
                    if let host = ProcessHost.current { return try host.run(self, waker) }
                    return try RunningChild.run(self, waker)
                }
            }
        } onCancel: {
            waker.wake()
        }
        return try result.get()
    }
}

/// Where programs are that are named without a path.
package enum ProgramFinder {
    /// `PATH`, or what a shell takes where there is none.
    package static var path: String {
        ProcessSetup.environment("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// The whole path of a program, as a shell would find it; nil where there is none that we may run.
    package static func find(_ word: String) -> FilePath? {
        if word.contains("/") { return ChildProcess.isExecutable(FilePath(word)) ? FilePath(word) : nil }
        return path.split(separator: ":").lazy.map { FilePath(String($0)).appending(word) }
            .first { $0.isAbsolute && ChildProcess.isExecutable($0) }
    }
}
