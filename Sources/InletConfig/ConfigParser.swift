import InletCore
import SystemPackage

/// The way from a file's bytes to settings: text, nodes, values, settings.
struct ConfigParser {
    let path: FilePath
    let types: [DestinationType]
    let environment: [String: String]
    let defaults: ConfigDefaults

    /// - Parameter trust: of the file; nil for a text that stands in none.
    func parse(_ input: [UInt8], _ trust: FileTrust?) throws(ConfigErrors) -> LoadedConfig {
        let bytes = input.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(input.dropFirst(3)) : input
        let isTooLarge = bytes.count > YAMLDocument.maximumBytes
        let source = SourceText(isTooLarge ? [] : bytes)
        var mask = SecretMask(source: source, names: ValueKind.section(types.flatMap(\.keys)).secretNames)
        let root: YAMLNode
        do {
            root = try Self.document(bytes)
        } catch {
            throw ErrorReport(file: path.display, source: source, mask: mask).errors([error])
        }
        var reader = SettingsReader(root: root, values: values(.filled, source), defaults: defaults)
        let settings = reader.read()
        for node in reader.values.secrets { mask.hide(node) }
        let report = ErrorReport(
            file: path.display, source: source, mask: mask, filledIn: reader.values.filledIn)
        if !reader.values.problems.isEmpty { throw report.errors(reader.values.problems) }
        let rule = reader.file.permissions
        let found = rule == .off ? [] : objections(reader.values, trust)
        if rule == .strict, !found.isEmpty { throw report.errors(found) }
        return LoadedConfig(
            settings: settings, warnings: report.errors(found + notes(reader.file)).list, file: path,
            effective: effective(root, source), filled: withStateDirectory(reader.file.values),
            credentialFiles: reader.values.files.map(\.file.path), report: report)
    }

    /// What is allowed, and should be known to whoever starts with it.
    private func notes(_ file: Section<ConfigKeys>) -> [Problem] {
        guard let place = file.place(\.tlsKeyLog) else { return [] }
        return [
            Problem(
                place,
                "whoever reads this file can read all that was sent, passwords too; take the key out and remove the file when you have looked"
            )
        ]
    }

    /// What is wrong with how the configuration's file, and those that it takes credentials from, are held.
    private func objections(_ values: ValueReader, _ trust: FileTrust?) -> [Problem] {
        guard let reader = defaults.reader else { return [] }
        let start = SourcePosition.start
        var found: [Problem] = []
        if let trust {
            found += trust.objections(to: .configuration, for: reader).map { Problem(start, "this file \($0)") }
            if trust.isReadableByStrangers(for: reader) {
                found += values.secrets.filter(Self.isLiteral).map(Self.warning)
            }
        }
        for (file, position) in values.files {
            let objections = file.trust.objections(to: .credential, for: reader)
            found += objections.map { Problem(position, "\(file.path.display) \($0)") }
        }
        return found
    }

    /// The root node, after the checks that libyaml leaves out or words badly.
    private static func document(_ bytes: [UInt8]) throws(Problem) -> YAMLNode {
        if bytes.count > YAMLDocument.maximumBytes {
            throw Problem(.start, "the file is larger than 1 MiB; a configuration is not")
        }
        return try YAMLDocument.parse(bytes)
    }

    /// A reader whose relative paths start at the configuration file's folder.
    private func values(_ mode: ValueReader.Mode, _ source: SourceText) -> ValueReader {
        let folder = defaults.workingDirectory.pushing(path).removingLastComponent().lexicallyNormalized()
        let paths = PathResolution(folder: folder, home: defaults.home)
        return ValueReader(
            mode: mode, types: types, interpolation: Interpolation(environment: environment, paths: paths),
            source: source)
    }

    /// A second reading that fills nothing in, so that nothing filled in can be shown. The first one found no problem,
    /// so its own are not looked at.
    private func effective(_ root: YAMLNode, _ source: SourceText) -> ConfigSection {
        var reader = values(.verbatim, source)
        return withStateDirectory(reader.section(root, ConfigKeys.all.specs, label: ""))
    }

    private func withStateDirectory(_ section: ConfigSection) -> ConfigSection {
        var section = section
        let key = ConfigKeys.all.stateDirectory.spec.name
        if section.values[key] == nil { section.values[key] = .string(defaults.stateDirectory.string) }
        return section
    }

    /// What a text says that `ConfigPrinter` wrote: nothing is filled in, and nothing is checked but that it is YAML.
    func shown(_ bytes: [UInt8]) throws(ConfigErrors) -> ConfigSection {
        let source = SourceText(bytes)
        do {
            return effective(try Self.document(bytes), source)
        } catch {
            let mask = SecretMask(source: source, names: ValueKind.section(types.flatMap(\.keys)).secretNames)
            throw ErrorReport(file: path.display, source: source, mask: mask).errors([error])
        }
    }

    /// `state_dir`, as far as it can be told of a text that may be wrong in any way.
    func stateDirectory(_ bytes: [UInt8]) -> FilePath {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).filter { $0.starts(with: "state_dir:".utf8) }
        // What is wrong with the text is said by whoever reads it for more than this.
        guard let node = (try? Self.document(bytes)) ?? lines.first.flatMap({ try? Self.document(Array($0)) }) else {
            return defaults.stateDirectory
        }
        var reader = values(.filled, SourceText(bytes))
        let key = ConfigKeys.all.stateDirectory
        return key.value(in: reader.section(node, [key.spec], label: "")) ?? defaults.stateDirectory
    }

    private static func isLiteral(_ node: YAMLNode) -> Bool {
        if case .scalar(let text, _) = node.content { !Interpolation.isNeeded(in: text) } else { false }
    }

    private static func warning(_ node: YAMLNode) -> Problem {
        Problem(
            node.position,
            "a credential stands here and others may read this file; use ${env:NAME} or ${file:PATH}, or chmod 600")
    }
}
