package import InletCore
package import SystemPackage

/// Defaults that the configuration takes from its environment.
package struct ConfigDefaults: Sendable {
    /// `state_dir` where the file gives none.
    package var stateDirectory: FilePath
    /// What `~` stands for; nil when unknown.
    package var home: FilePath?
    /// Where relative configuration paths given on the command line start from.
    package var workingDirectory: FilePath
    /// The user who reads the files; nil = their permissions are not checked.
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
    fileprivate var report: ErrorReport

    /// An error about a value of this file that is found later, such as a URL its destination cannot use.
    package func error(at position: SourcePosition, _ message: String) -> ConfigError {
        report.error(ConfigIssue(position, message))
    }
}

/// Reads a configuration file: from its bytes to nodes, to values, to settings.
package struct ConfigFile {
    /// Larger files are refused.
    package static let maximumBytes = YAMLDocument.maximumBytes

    private let path: FilePath
    private let types: [DestinationType]
    private let environment: [String: String]
    private let defaults: ConfigDefaults

    /// Reads and checks the file at `path`; throws everything that is wrong with it.
    package static func load(
        _ path: FilePath, types: [DestinationType], environment: [String: String], defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        let (bytes, trust): ([UInt8], FileTrust)
        do {
            (bytes, trust) = try FileTrust.read(path, limit: maximumBytes)
        } catch {
            let message = "cannot read the configuration: \(error)"
            throw ConfigErrors(list: [
                ConfigError(file: path.display, line: 1, column: 1, message: message, excerpt: "")
            ])
        }
        return try ConfigFile(path: path, types: types, environment: environment, defaults: defaults)
            .parse(bytes, trust)
    }

    /// Reads and checks a text as if it stood in `file`; it need not be text at all.
    package static func parse(
        text: some Sequence<UInt8>, file: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        try ConfigFile(path: file, types: types, environment: environment, defaults: defaults)
            .parse(Array(text), nil)
    }

    /// Reads what `inlet config show` printed: nothing is filled in or checked but that it is YAML, and secrets are `***`.
    package static func shown(
        _ text: String, file: FilePath, types: [DestinationType], defaults: ConfigDefaults
    ) throws(ConfigErrors) -> ConfigSection {
        let reader = ConfigFile(path: file, types: types, environment: [:], defaults: defaults)
        let source = SourceText(text.utf8)
        do {
            return reader.effective(try document(Array(text.utf8)), source)
        } catch {
            throw ErrorReport(file: file.display, source: source, mask: reader.mask(source)).errors([error])
        }
    }

    /// Where the agent of the configuration at `path` has its state, as far as a file that is wrong, or away, tells that.
    package static func stateDirectory(
        of path: FilePath, types: [DestinationType], environment: [String: String], defaults: ConfigDefaults
    ) -> FilePath {
        // What keeps it from being read is said by whoever reads it for more than this.
        guard let (bytes, _) = try? FileTrust.read(path, limit: maximumBytes) else { return defaults.stateDirectory }
        return stateDirectory(inText: bytes, of: path, types: types, environment: environment, defaults: defaults)
    }

    /// The same of a text that may be wrong in any way.
    static func stateDirectory(
        inText bytes: [UInt8], of path: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) -> FilePath {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).filter { $0.starts(with: "state_dir:".utf8) }
        // What is wrong with the text is said by whoever reads it for more than this.
        guard let node = ([bytes] + lines.prefix(1).map { Array($0) }).lazy.compactMap({ try? document($0) }).first
        else {
            return defaults.stateDirectory
        }
        var values = ConfigFile(path: path, types: types, environment: environment, defaults: defaults)
            .values(SourceText(bytes))
        let key = ConfigKeys.all.stateDirectory
        return key.value(in: values.section(node, [key.spec], label: "")) ?? defaults.stateDirectory
    }
}

extension ConfigFile {
    /// - Parameter trust: of the file; nil for a text that stands in none.
    private func parse(_ input: [UInt8], _ trust: FileTrust?) throws(ConfigErrors) -> LoadedConfig {
        let bytes = SourceText.withoutMark(input)
        let isTooLarge = bytes.count > YAMLDocument.maximumBytes
        let source = SourceText(isTooLarge ? [] : bytes)
        var mask = mask(source)
        let root: YAMLNode
        do {
            root = try Self.document(bytes)
        } catch {
            throw ErrorReport(file: path.display, source: source, mask: mask).errors([error])
        }
        var reader = SettingsReader(root: root, values: values(source), defaults: defaults)
        let settings = reader.read()
        for node in reader.values.secrets { mask.hide(node) }
        let report = ErrorReport(
            file: path.display, source: source, mask: mask, redactor: Redactor(Array(reader.values.filledIn)))
        if !reader.values.problems.isEmpty { throw report.errors(reader.values.problems) }
        let rule = reader.file.permissions
        let found = rule == .off ? [] : objections(reader.values, trust)
        if rule == .strict, !found.isEmpty { throw report.errors(found) }
        return LoadedConfig(
            settings: settings, warnings: report.errors(found + notes(reader.file)).list, file: path,
            effective: effective(root, source), filled: withStateDirectory(reader.file.values),
            credentialFiles: reader.values.files.map(\.path), report: report)
    }

    /// Warnings about what is allowed and risky.
    private func notes(_ file: Section<ConfigKeys>) -> [ConfigIssue] {
        guard let place = file.place(\.tlsKeyLog) else { return [] }
        return [
            ConfigIssue(
                place,
                "whoever reads this file can read all that was sent, passwords too; take the key out and remove the file when you have looked"
            )
        ]
    }

    /// What is wrong with the permissions of the configuration's file and of the files that it takes credentials from.
    private func objections(_ values: ValueReader, _ trust: FileTrust?) -> [ConfigIssue] {
        guard let reader = defaults.reader else { return [] }
        let start = SourcePosition.start
        var found: [ConfigIssue] = []
        if let trust {
            found += trust.objections(to: .configuration, for: reader).map { ConfigIssue(start, "this file \($0)") }
            if trust.isReadableByStrangers(for: reader) {
                found += values.secrets.filter(Self.isLiteral).map(Self.warning)
            }
        }
        for file in values.files {
            let objections = file.trust.objections(to: .credential, for: reader)
            found += objections.map { ConfigIssue(file.position, "\(file.path.display) \($0)") }
        }
        return found
    }

    /// The root node, after the checks that libyaml leaves out or words badly.
    private static func document(_ bytes: [UInt8]) throws(ConfigIssue) -> YAMLNode {
        if bytes.count > YAMLDocument.maximumBytes {
            throw ConfigIssue(.start, "the file is larger than 1 MiB; a configuration is not")
        }
        return try YAMLDocument.parse(bytes)
    }

    /// A reader whose relative paths start at the configuration file's folder.
    private func values(_ source: SourceText, isVerbatim: Bool = false) -> ValueReader {
        let folder = defaults.workingDirectory.pushing(path).removingLastComponent().lexicallyNormalized()
        return ValueReader(
            isVerbatim: isVerbatim, types: types,
            interpolation: Interpolation(environment: environment, folder: folder, home: defaults.home), source: source)
    }

    private func mask(_ source: SourceText) -> SecretMask {
        SecretMask(source: source, names: ValueKind.section(types.flatMap(\.keys)).secretNames)
    }

    /// A second reading that fills nothing in, so that nothing filled in can be shown. The first one found no problem,
    /// so its own are not looked at.
    private func effective(_ root: YAMLNode, _ source: SourceText) -> ConfigSection {
        var reader = values(source, isVerbatim: true)
        return withStateDirectory(reader.section(root, ConfigKeys.all.specs, label: ""))
    }

    private func withStateDirectory(_ section: ConfigSection) -> ConfigSection {
        var section = section
        let key = ConfigKeys.all.stateDirectory.spec.name
        if section.values[key] == nil { section.values[key] = .string(defaults.stateDirectory.string) }
        return section
    }

    private static func isLiteral(_ node: YAMLNode) -> Bool {
        if case .scalar(let text, _) = node.content { !Interpolation.isNeeded(in: text) } else { false }
    }

    private static func warning(_ node: YAMLNode) -> ConfigIssue {
        ConfigIssue(
            node.position,
            "a credential stands here and others may read this file; use ${env:NAME} or ${file:PATH}, or chmod 600")
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
