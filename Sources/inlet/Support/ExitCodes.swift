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
        case .failed: "Some files failed, or a check found something."
        case .usage: "The command line is wrong: an unknown command or option, or a value that does not fit."
        case .unavailable: "A destination is down, refuses the credentials, or does not answer."
        case .tryLater: "Try later: no agent runs, another one holds the state directory, or the disk is full."
        case .configuration: "The configuration is missing or wrong, or names something that does not exist."
        case .interrupted: "A signal, such as Ctrl-C, ended the command before its work was done."
        }
    }

    var code: ExitCode { ExitCode(rawValue) }

    /// Prints the reason on standard error: `throw ExitStatus.failed.saying("there is no job 17")`.
    func saying(_ reason: String) -> ExitCode {
        Console.printError("inlet: \(reason)")
        return code
    }

    /// The end of a command that asked a server for one thing: the server could not answer anybody, or refused this request.
    static func of(_ error: DeliveryError) -> ExitStatus {
        switch (error.verdict, error.code) {
        // Retrying does not help: this machine's disk or the request itself is the reason.
        case (_, .destinationFull), (_, .destinationUnwritable), (_, .notFound), (_, .corrupted): .failed
        case (.outage, _), (.credentials, _), (.retry, _): .unavailable
        case (.giveUp, _), (.sourceChanged, _), (.sourceGone, _), (.cancelled, _): .failed
        }
    }
}
