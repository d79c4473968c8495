package import InletCore
package import SystemPackage

/// What the configuration takes from its surroundings.
package struct ConfigDefaults: Sendable {
    /// `state_dir` where the file gives none.
    package var stateDirectory: FilePath
    /// What `~` stands for; nil when unknown.
    package var home: FilePath?
    /// Where relative configuration paths given on the command line start from.
    package var workingDirectory: FilePath
    /// Who reads it, and by whom files are judged; nil = they are not.
    package var reader: FileTrust.Reader?
    /// Asks the system for the number of a user.
    package var users = UserLookup.onlyRoot

    package init(
        stateDirectory: FilePath, home: FilePath?, workingDirectory: FilePath, reader: FileTrust.Reader? = nil
    ) {
        self.reader = reader
        self.stateDirectory = stateDirectory
        self.home = home
        self.workingDirectory = workingDirectory
    }

    /// The usual places: `/var/lib/inlet` for root, else `inlet` below `XDG_STATE_HOME` or `~/.local/state`
    /// (XDG Base Directory Specification 0.8).
    package static func standard(
        environment: [String: String], isRoot: Bool, workingDirectory: FilePath
    ) -> ConfigDefaults {
        let home = environment["HOME"].map { FilePath($0) }.flatMap { $0.isAbsolute ? $0 : nil }
        let given = environment["XDG_STATE_HOME"].map { FilePath($0) }.flatMap { $0.isAbsolute ? $0 : nil }
        let state = given ?? home?.appending(".local").appending("state")
        let folder = isRoot ? nil : state?.appending("inlet")
        return ConfigDefaults(
            stateDirectory: folder ?? "/var/lib/inlet", home: home, workingDirectory: workingDirectory)
    }
}

/// A configuration that was read without errors.
package struct LoadedConfig: Sendable {
    package var settings: Settings
    /// What works but should be changed, in the file's order.
    package var warnings: [ConfigError]
    /// The file as it was named.
    package var file: FilePath
    /// Every value with defaults filled in and paths resolved, but `${…}` left as written: what may be shown.
    package var effective: ConfigSection
    /// The same with `${…}` filled in: what is compared, and never shown.
    package var filled: ConfigSection
    /// Files besides it that credentials were taken from, or will be.
    package var credentialFiles: [FilePath]
    private var report: ErrorReport

    init(
        settings: Settings, warnings: [ConfigError], file: FilePath, effective: ConfigSection, filled: ConfigSection,
        credentialFiles: [FilePath], report: ErrorReport
    ) {
        self.credentialFiles = credentialFiles
        self.settings = settings
        self.warnings = warnings
        self.file = file
        self.effective = effective
        self.filled = filled
        self.report = report
    }

    /// An error about a value of this file that is found later, such as a URL its destination cannot use.
    package func error(at position: SourcePosition, _ message: String) -> ConfigError {
        report.error(Problem(position, message))
    }
}

/// Reads configuration files.
package enum ConfigFile {
    /// Larger files are refused.
    package static let maximumBytes = YAMLDocument.maximumBytes

    /// Reads and checks the file at `path`; throws everything that is wrong with it.
    package static func load(
        _ path: FilePath, types: [DestinationType], environment: [String: String], defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: maximumBytes)
        } catch {
            let message = "cannot read the configuration: \(error)"
            throw ConfigErrors(list: [
                ConfigError(file: path.display, line: 1, column: 1, message: message, excerpt: "")
            ])
        }
        return try ConfigParser(path: path, types: types, environment: environment, defaults: defaults)
            .parse(file.bytes, file.trust)
    }

    /// Reads and checks a text as if it stood in `file`.
    package static func parse(
        text: String, file: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        try parse(
            bytes: Array(text.utf8), file: file, types: types, environment: environment, defaults: defaults)
    }

    /// The same for bytes, which need not be text at all.
    package static func parse(
        bytes: [UInt8], file: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        try ConfigParser(path: file, types: types, environment: environment, defaults: defaults)
            .parse(bytes, nil)
    }
}

extension ConfigFile {
    /// Reads what `inlet config show` printed: nothing is filled in or checked, and secrets are `***`.
    package static func shown(
        _ text: String, file: FilePath, types: [DestinationType], defaults: ConfigDefaults
    ) throws(ConfigErrors) -> ConfigSection {
        try ConfigParser(path: file, types: types, environment: [:], defaults: defaults).shown(Array(text.utf8))
    }

    /// Where the agent of the configuration at `path` has its state, as far as a file that is wrong, or away, tells that.
    package static func stateDirectory(
        of path: FilePath, types: [DestinationType], environment: [String: String], defaults: ConfigDefaults
    ) -> FilePath {
        // What keeps it from being read is said by whoever reads it for more than this.
        guard let file = try? SmallFile.read(path, limit: maximumBytes) else { return defaults.stateDirectory }
        return ConfigParser(path: path, types: types, environment: environment, defaults: defaults)
            .stateDirectory(file.bytes)
    }
}

extension LoadedConfig {
    /// What holds once this has taken the place of `running`: what needs a restart stays as it was.
    package func taking(over running: LoadedConfig) -> LoadedConfig {
        var result = self
        for spec in ConfigKeys.all.specs {
            guard let keep = spec.untilRestart else { continue }
            keep(&result.settings, running.settings)
            result.effective.values[spec.name] = running.effective.values[spec.name]
            result.filled.values[spec.name] = running.filled.values[spec.name]
        }
        return result
    }
}
