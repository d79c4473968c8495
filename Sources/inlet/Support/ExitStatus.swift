import ArgumentParser

/// The exit codes, after sysexits(3).
enum ExitStatus {
    /// Some files failed, or a check found something.
    static let failed = ExitCode(1)
    /// A destination is unavailable (EX_UNAVAILABLE).
    static let unavailable = ExitCode(69)
    /// Try later: another instance holds the lock (EX_TEMPFAIL).
    static let tryLater = ExitCode(75)
    /// The configuration is wrong (EX_CONFIG).
    static let configuration = ExitCode(78)
}
