import CLinux
import Glibc
package import SystemPackage

/// This process's identity, and its requests to the kernel about itself.
package enum ProcessSetup {
    /// Call this before the first thread starts. `SIGIO` comes when a writer opens a file during the writer check,
    /// `SIGPIPE` when a peer disconnects; by default either ends the process.
    package static func ignoreSignals() {
        signal(SIGIO, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
    }

    /// Raises the soft limit of open descriptors to the hard one, and returns the resulting limit.
    @discardableResult
    package static func raiseDescriptorLimit() -> UInt64 {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return UInt64(limit.rlim_cur)
    }

    /// Open descriptors that this process may have: now, and after `raiseDescriptorLimit`.
    package static var descriptorLimit: (now: UInt64, most: UInt64) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }

    /// Keeps the secrets in this process's memory out of core dumps and crash reports, and away from other programs of
    /// the same user. Call this before reading the first secret. Programs that this one starts inherit only the limit.
    ///
    /// The limit alone is not enough: a `core_pattern` that names a program ignores it (core(5)). From here on files of
    /// `/proc/self` belong to root; those that we read are open to everybody, and `fd` to the process itself.
    package static func protectMemory() {
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        _ = inlet_forbid_dumps()
        // TLS libraries write every connection's keys to the file that this variable names, whoever set it.
        unsetenv(keyLog)
        // Swift's own crash reports show what registers point to. The runtime has already read the variable by now.
        if environment("SWIFT_BACKTRACE") != nil { return }
        for number in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] { signal(number, SIG_DFL) }
    }

    private static let keyLog = "SSLKEYLOGFILE"

    /// Appends the keys of all TLS connections of this process to a file. Only before the first thread starts. Only the
    /// owner may read a file that it creates.
    package static func logSessionKeys(to file: FilePath) throws(SystemError) {
        let made = try SystemCall.result("open", file) {
            inlet_open(file.string, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        }
        close(made)
        setenv(keyLog, file.string, 1)
    }

    /// The effective user, whose access the kernel judges.
    package static var userID: UInt32 { geteuid() }

    /// The effective group, and the process's other groups.
    package static var groups: Set<UInt32> {
        let count = getgroups(0, nil)
        var all = [gid_t](repeating: 0, count: Int(max(count, 0)))
        let filled = getgroups(count, &all)
        return Set(all.prefix(Int(max(filled, 0)))).union([getegid()])
    }

    package static var processID: Int32 { getpid() }

    /// Ends another process as a power cut would: it can do nothing about it.
    package static func kill(_ process: Int32) { _ = Glibc.kill(process, SIGKILL) }

    /// Whether the process may ask for leases on other users' files, for the writer check: whether CAP_LEASE
    /// (capabilities(7)) is in effect.
    package static var mayLeaseAll: Bool {
        guard let text = statusField("CapEff"), let bits = UInt64(text, radix: 16) else { return false }
        return bits >> 28 & 1 == 1
    }

    /// Makes programs started from here on run without this process's capabilities.
    package static func keepCapabilities() { _ = inlet_keep_capabilities() }

    /// The number of this process's threads; 0, which is impossible, where it cannot be seen.
    package static var threads: Int { count(of: "/proc/self/task") ?? 0 }

    /// The number of names in a folder; nil where it cannot be read.
    static func count(of folder: FilePath) -> Int? {
        do throws(SystemError) {
            var names = try DirectoryStream(folder)
            var count = 0
            while try names.next() != nil { count += 1 }
            return count
        } catch {
            // Unknown where /proc cannot be seen.
            return nil
        }
    }

    /// Makes the process create nothing that others may write to, where it would (umask(2)). The mask belongs to the
    /// whole process, so files created by other threads meanwhile are affected too, and only in that.
    ///
    /// - Returns: the former mask, for `setFileMask`; nil where nothing had to change.
    package static func withholdWritingFromOthers() -> UInt32? {
        guard let text = statusField("Umask"), let mask = UInt32(text, radix: 8), mask & 0o002 == 0 else { return nil }
        setFileMask(mask | 0o002)
        return mask
    }

    package static func setFileMask(_ mask: UInt32) { _ = umask(mode_t(mask)) }

    package static var hostName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The value of an environment variable; nil when it is not set.
    package static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// The user's home from `HOME`, otherwise from the user database; nil where neither has it.
    package static var homeDirectory: FilePath? {
        if let home = environment("HOME"), home.hasPrefix("/") { return FilePath(home) }
        guard let entry = getpwuid(geteuid()), let home = entry.pointee.pw_dir else { return nil }
        return FilePath(platformString: home)
    }

    /// Ends the process at once (`_exit(2)`): no handlers, no flushing.
    package static func exitNow(_ code: Int32) -> Never { _exit(code) }

    private static func statusField(_ name: String) -> Substring? {
        // Where /proc cannot be seen nothing is known: callers take nil for "no", and find out by trying.
        guard let bytes = DurableFile.readIfPossible("/proc/self/status", limit: 64 << 10) else { return nil }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where line.hasPrefix(name + ":") {
            let value = line.dropFirst(name.count + 1)
            return value.drop { $0 == " " || $0 == "\t" }
        }
        return nil
    }
}

/// While this lives, SIGTERM and Ctrl-C end the process with 0, as they do when the agent runs: the first process of a
/// container would otherwise ignore them. Restores their former handling; an ignored signal stays ignored.
package final class ExitSignals: Sendable {
    private let former: [(number: CInt, action: sigaction)]

    package init() {
        former = [SIGTERM, SIGINT].compactMap { number in
            var action = sigaction()
            sigaction(number, nil, &action)
            let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            if handler == unsafeBitCast(SIG_IGN, to: Int.self) { return nil }
            signal(number) { _ in _exit(0) }
            return (number, action)
        }
    }

    deinit {
        for (number, action) in former {
            var action = action
            sigaction(number, &action, nil)
        }
    }
}
