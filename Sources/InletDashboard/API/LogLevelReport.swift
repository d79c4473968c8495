internal import InletAgent
internal import InletCore

/// `GET log/level`.
package struct LogLevelReport: Codable, Sendable {
    /// The least important level that is written.
    package var level: String
    /// The configuration's, where another one holds.
    package var configured: String?
    /// Which there are, the least important first.
    package var levels = LogSettings.Level.allCases.map(\.rawValue)

    /// `debug, until the next start or reload (the configuration says info)`.
    package var text: String {
        level + (configured.map { ", until the next start or reload (the configuration says \($0))" } ?? "")
    }
}

/// What `inlet log level` posts.
package struct LogLevelWish: Codable, Sendable {
    package var level: String

    package init(level: String) { self.level = level }
}

extension LocalControl {
    /// nil while no agent runs.
    package func logLevel() -> LogLevelReport? {
        agent.logLevel.map { now, configured in
            LogLevelReport(level: now.rawValue, configured: now == configured ? nil : configured.rawValue)
        }
    }

    package func setLogLevel(_ wish: LogLevelWish) -> CommandReport {
        guard let level = LogSettings.Level(rawValue: wish.level) else {
            let levels = LogSettings.Level.allCases.map(\.rawValue)
            let hint = Suggestion.nearest(to: wish.level, in: levels).map { "; did you mean '\($0)'?" } ?? ""
            return CommandReport(
                done: false,
                message: "'\(DisplayText.escape(wish.level))' is none of \(levels.joined(separator: ", "))\(hint)")
        }
        guard agent.setLogLevel(level, by: by), let report = logLevel() else {
            return CommandReport(done: false, message: "no agent is running; set log.level in the configuration")
        }
        return CommandReport(done: true, message: "log level: \(report.text)")
    }
}
