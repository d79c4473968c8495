import ArgumentParser
import InletCore

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
    /// A signal came before the end.
    static let interrupted = ExitCode(130)

    /// What a command ends with that asked a server for one thing: whether the server could do it for nobody now, or not
    /// this.
    static func of(_ error: DeliveryError) -> ExitCode {
        switch (error.verdict, error.code) {
        // No better moment and no better server would help: it is this machine's disk, or what was asked for.
        case (_, .destinationFull), (_, .destinationUnwritable), (_, .notFound), (_, .corrupted): failed
        case (.outage, _), (.credentials, _), (.retry, _): unavailable
        case (.giveUp, _), (.sourceChanged, _), (.sourceGone, _), (.cancelled, _): failed
        }
    }
}
