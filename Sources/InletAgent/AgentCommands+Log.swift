package import InletCore

extension AgentCommands {
    /// The least important level that the running agent logs, and the configuration's; nil while no agent runs, or none logs.
    package var logLevel: (now: LogSettings.Level, configured: LogSettings.Level)? {
        guard let log = live?.log, let now = log.level, let configured = log.configuredLevel else { return nil }
        return (now, configured)
    }

    /// Logs from now on what is at least as important, until the next start or reload; false while no agent runs.
    package func setLogLevel(_ level: LogSettings.Level, by: String) -> Bool {
        live?.log.setLevel(level, by: by) ?? false
    }
}
