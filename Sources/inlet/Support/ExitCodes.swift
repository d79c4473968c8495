import ArgumentParser
import InletCore

/// The exit codes of all commands, after sysexits.h. The manual prints this table.
enum ExitStatus: Int32, CaseIterable {
    case success = 0
    case failed = 1
    case usage = 64
    case unavailable = 69
    case tryLater = 75
    case configuration = 78
    case interrupted = 130

    /// The name in sysexits.h; nil where that has none.
    var symbol: String? {
        switch self {
        case .success: "EX_OK"
        case .failed, .interrupted: nil
        case .usage: "EX_USAGE"
        case .unavailable: "EX_UNAVAILABLE"
        case .tryLater: "EX_TEMPFAIL"
        case .configuration: "EX_CONFIG"
        }
    }

    /// For the manual.
    var meaning: String {
        switch self {
        case .success: "The command did what you asked for."
        case .failed:
            "Some files failed, `check` has warnings, `doctor` finds a fault, `config diff` a difference, or `verify` misses "
                + "a file."
        case .usage: "The command line is wrong: an unknown command or option, or a value that does not fit."
        case .unavailable: "A destination is down, refuses the credentials, or does not answer."
        case .tryLater:
            "Try later. No agent runs, another one holds the state directory, this machine lacks a resource, or the agent "
                + "that `send` followed has stopped for 30 s. `run`, `send` and `demo` wait 5 s for a command that "
                + "only reads the journal."
        case .configuration: "The configuration, a folder or the journal is missing or wrong."
        case .interrupted: "A signal stopped `send` before its end, or a second signal stopped any command at once."
        }
    }

    var code: ExitCode { ExitCode(rawValue) }

    /// Prints the reason on standard error: `throw ExitStatus.failed.saying("there is no job 17")`.
    func saying(_ reason: String) -> ExitCode {
        Console.printError("inlet: \(reason)")
        return code
    }

    /// The exit code of a command that asked a server: the server failed, or refused this request.
    static func of(_ error: DeliveryError) -> ExitStatus {
        switch (error.verdict, error.code) {
        // Retrying does not help: this machine's disk or the request itself is the reason.
        case (_, .destinationFull), (_, .destinationUnwritable), (_, .notFound), (_, .corrupted): .failed
        case (.outage, _), (.credentials, _), (.retry, _): .unavailable
        case (.giveUp, _), (.sourceChanged, _), (.sourceGone, _), (.cancelled, _): .failed
        }
    }
}
