package import InletCore
package import SystemPackage

/// Defaults that depend on the environment.
package struct ConfigDefaults: Sendable {
    /// `state_dir` if the file has none.
    package var stateDirectory: FilePath
    /// The value of `~`; nil if unknown.
    package var home: FilePath?
    /// The folder that relative paths on the command line start from.
    package var workingDirectory: FilePath
    /// The user who reads the files; nil skips the permission checks.
    package var reader: FileTrust.Reader?
    /// Looks up a user's number in the system.
    package var users = UserLookup.onlyRoot

    package init(
        stateDirectory: FilePath, home: FilePath?, workingDirectory: FilePath, reader: FileTrust.Reader? = nil
    ) {
        self.reader = reader
        self.stateDirectory = stateDirectory
        self.home = home
        self.workingDirectory = workingDirectory
    }

    /// The usual folders: `/var/lib/inlet` for root, otherwise `inlet` in `XDG_STATE_HOME` or `~/.local/state` (XDG
    /// Base Directory Specification 0.8).
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

/// A configuration without errors.
package struct LoadedConfig: Sendable {
    package var settings: Settings
    /// Warnings in the file's order: things that work but should be changed.
    package var warnings: [ConfigError]
    /// The file as the user named it.
    package var file: FilePath
    /// All values, with defaults filled in and paths resolved, but `${…}` as written: safe to show.
    package var effective: ConfigSection
    /// All values with `${…}` filled in: for comparing, never for showing.
    package var filled: ConfigSection
    /// Further files that contain credentials.
    package var credentialFiles: [FilePath]
    /// Everything that must not leave this machine: secret values as written, and whatever `${…}` stands for.
    package var secrets: [Secret] = []
    fileprivate var report: ErrorReport

    /// `text` without the values that were filled in for `${…}`.
    package func redacted(_ text: String) -> String { report.redactor.redacted(text) }

    /// An error in a value that is found later, such as a URL that its destination cannot use.
    package func error(at position: SourcePosition, _ message: String) -> ConfigError {
        report.error(ConfigIssue(position, message))
    }
}

/// Reads a configuration file: bytes to nodes, nodes to values, values to settings.
package struct ConfigFile {
    /// The largest file that Inlet reads.
    package static let maximumBytes = YAMLDocument.maximumBytes

    private let path: FilePath
    private let types: [DestinationType]
    private let environment: [String: String]
    private let defaults: ConfigDefaults

    /// Reads and checks the file at `path`; throws all its errors.
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

    /// Reads and checks the content of `file`, which may be any bytes.
    package static func parse(
        text: some Sequence<UInt8>, file: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) throws(ConfigErrors) -> LoadedConfig {
        try ConfigFile(path: file, types: types, environment: environment, defaults: defaults)
            .parse(Array(text), nil)
    }

    /// Reads the output of `inlet config show`: checks only that it is YAML, fills nothing in, and secrets are `***`.
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

    /// A text for a comparison that people see: without its secrets, also where the text has errors.
    package static func side(
        _ bytes: [UInt8], file: FilePath, types: [DestinationType], defaults: ConfigDefaults
    ) -> TextDiff.Side {
        let text = SourceText.withoutMark(bytes)
        let source = SourceText(text)
        let reader = ConfigFile(path: file, types: types, environment: [:], defaults: defaults)
        var mask = reader.mask(source)
        // A text that is no YAML has no values; the names of its keys hide its secrets.
        if let root = try? document(text) {
            var values = reader.values(source, isVerbatim: true)
            _ = values.section(root, ConfigKeys.specs, label: "")
            for node in values.secrets { mask.hide(node) }
        }
        func line(_ scalars: some Sequence<Unicode.Scalar>) -> String {
            String(String.UnicodeScalarView(scalars))
        }
        let shown = source.lines.enumerated().map { index, scalars in
            guard let limit = mask.limit(ofLine: index + 1), limit < scalars.count else { return line(scalars) }
            return line(scalars.prefix(limit)) + " ***"
        }
        return TextDiff.Side(lines: source.lines.map { line($0) }, shown: shown)
    }

    /// The state folder of the configuration at `path`, as far as a broken or missing file reveals it.
    package static func stateDirectory(
        of path: FilePath, types: [DestinationType], environment: [String: String], defaults: ConfigDefaults
    ) -> FilePath {
        // Reading the configuration itself reports why it fails.
        guard let (bytes, _) = try? FileTrust.read(path, limit: maximumBytes) else { return defaults.stateDirectory }
        return stateDirectory(inText: bytes, of: path, types: types, environment: environment, defaults: defaults)
    }

    /// The same for a text that may contain any errors.
    static func stateDirectory(
        inText bytes: [UInt8], of path: FilePath, types: [DestinationType], environment: [String: String],
        defaults: ConfigDefaults
    ) -> FilePath {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).filter { $0.starts(with: "state_dir:".utf8) }
        // Reading the configuration itself reports what is wrong with the text.
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
    /// - Parameter trust: the file's trust; nil for a text that is not in a file.
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
            credentialFiles: reader.values.files.map(\.path),
            secrets: Array(reader.values.filledIn) + reader.values.secrets.compactMap(Self.literal), report: report)
    }

    /// A secret value that is written in the file; nil for one that comes from elsewhere.
    private static func literal(_ node: YAMLNode) -> Secret? {
        guard case .scalar(let text, _) = node.content, isLiteral(node) else { return nil }
        return Secret(text)
    }

    /// Warnings about allowed but risky settings.
    private func notes(_ file: Section<ConfigKeys>) -> [ConfigIssue] {
        let idle = file.idleFleetKeys()
        guard let place = file.place(\.tlsKeyLog) else { return idle }
        return idle + [
            ConfigIssue(
                place,
                "remove this key, and delete the file it names, when you are done: anyone who can read that file can decrypt all traffic, passwords included"
            )
        ]
    }

    /// Objections to the permissions of the configuration and of the files with credentials.
    private func objections(_ values: ValueReader, _ trust: FileTrust?) -> [ConfigIssue] {
        guard let reader = defaults.reader else { return [] }
        let start = SourcePosition.start
        var found: [ConfigIssue] = []
        if let trust {
            found += trust.objections(to: .configuration, for: reader).map { ConfigIssue(start, "this file \($0)") }
            if trust.isReadableByStrangers(for: reader) {
                found += values.secrets.filter { Self.isLiteral($0) && !Self.isHarmless($0) }.map(Self.warning)
            }
        }
        for file in values.files {
            let objections = file.trust.objections(to: .credential, for: reader)
            found += objections.map { ConfigIssue(file.position, "\(file.path.display) \($0)") }
        }
        return found
    }

    /// The root node, after checks that libyaml lacks or reports badly.
    private static func document(_ bytes: [UInt8]) throws(ConfigIssue) -> YAMLNode {
        if bytes.count > YAMLDocument.maximumBytes {
            throw ConfigIssue(.start, "the file is larger than 1 MiB, the limit for a configuration")
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

    /// Reads the file again without filling anything in, so that nothing secret can be shown. The first reading had no
    /// errors, so this one's are ignored.
    private func effective(_ root: YAMLNode, _ source: SourceText) -> ConfigSection {
        var reader = values(source, isVerbatim: true)
        return withStateDirectory(reader.section(root, ConfigKeys.specs, label: ""))
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

    /// Whether it is an address of PostgreSQL without a password.
    private static func isHarmless(_ node: YAMLNode) -> Bool {
        guard case .scalar(let text, _) = node.content, text.hasPrefix("postgres") else { return false }
        // Reading the address as a setting says what is wrong with it.
        return (try? FleetURL(text))?.secrets.isEmpty ?? false
    }

    private static func warning(_ node: YAMLNode) -> ConfigIssue {
        ConfigIssue(
            node.position,
            "use ${env:NAME} or ${file:PATH}, or chmod 600: other users can read this file, and this line holds a credential"
        )
    }
}

extension LoadedConfig {
    /// The configuration in effect after a reload over `running`: keys that need a restart keep their values.
    package func taking(over running: LoadedConfig) -> LoadedConfig {
        var result = self
        for spec in ConfigKeys.specs {
            guard let keep = spec.untilRestart else { continue }
            keep(&result.settings, running.settings)
            result.effective.values[spec.name] = running.effective.values[spec.name]
            result.filled.values[spec.name] = running.filled.values[spec.name]
        }
        return result
    }
}
