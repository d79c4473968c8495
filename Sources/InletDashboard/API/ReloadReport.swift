package import InletAgent
internal import InletCore

/// What came of a reload.
package struct ReloadReport: Codable, Sendable, Equatable {
    package struct Change: Codable, Sendable, Equatable {
        package var path: String
        /// nil where there is none.
        package var from: String?
        package var to: String?
        /// `now` or `restart`.
        package var effect: String
    }

    package var done: Bool
    package var message: String
    package var changes: [Change] = []
    package var errors: [ConfigFault] = []
    /// What works but should be changed; nil where nothing should.
    package var warnings: [ConfigFault]?

    /// - Parameter outcome: nil when no agent runs that has a configuration file.
    package init(_ outcome: ReloadOutcome?) {
        switch outcome {
        case .done(let changes, let parked, let warnings):
            done = true
            message = Self.message(changes, parked)
            self.changes = changes.map {
                Change(path: $0.path, from: $0.from, to: $0.to, effect: $0.effect.rawValue)
            }
            self.warnings = warnings.isEmpty ? nil : warnings
        case .refused(let errors):
            done = false
            message = "the configuration is wrong; the old one stays"
            self.errors = errors
        case .failed(let reason):
            done = false
            message = reason
        case nil:
            done = false
            message = "this agent has no configuration file to read again"
        }
    }

    private static func message(_ changes: [ConfigChange], _ parked: Int) -> String {
        var parts = [
            changes.isEmpty ? "nothing has changed" : changes.count == 1 ? "1 change" : "\(changes.count) changes"
        ]
        let waiting = changes.filter { $0.effect == .restart }.map(\.path)
        if !waiting.isEmpty { parts.append("restart needed: \(waiting.joined(separator: ", "))") }
        if parked > 0 {
            let what = parked == 1 ? "1 delivery waits" : "\(parked) deliveries wait"
            parts.append("\(what) for destinations that are no longer configured")
        }
        return parts.joined(separator: "; ")
    }
}

/// The configuration of a running agent.
package struct ConfigReport: Codable, Sendable, Equatable {
    package var file: String
    /// As `inlet config show` prints it: secrets are `***`.
    package var text: String
    package var loaded_at: String

    init(_ shown: ShownConfig) {
        file = shown.file.display
        text = shown.text
        loaded_at = shown.loadedAt.rfc3339
    }
}
