/// A value that differs between two configurations.
package struct ConfigChange: Sendable, Equatable {
    /// The path of keys to it; entries of lists by their path or name, or by their number.
    package var keys: [String]
    /// As `inlet config show` prints them: secrets as `***`, `${…}` as written. nil for a missing value.
    package var from: String?
    package var to: String?
    /// Whether the running agent keeps its value until a restart; otherwise the reload applies it.
    package var needsRestart: Bool

    /// `destinations.r2.part_size`, `watch[/srv/drop].settle`.
    package var path: String {
        keys.dropFirst().reduce(keys.first ?? "") { $1.hasPrefix("[") ? $0 + $1 : "\($0).\($1)" }
    }

    /// `destinations.r2.part_size: 8MiB -> 16MiB`.
    package var text: String {
        let tail = needsRestart ? " (needs a restart)" : ""
        return "\(path): \(from ?? "(none)") -> \(to ?? "(none)")\(tail)"
    }

    package init(keys: [String], from: String?, to: String?, needsRestart: Bool) {
        self.keys = keys
        self.from = from
        self.to = to
        self.needsRestart = needsRestart
    }
}
