import InletCore

/// Turns nodes into values by the key tables, and collects everything that is wrong on the way.
///
/// A value that cannot be read is reported and replaced by its default, so that the rest is checked too.
struct ValueReader {
    enum Mode {
        /// Texts and paths are filled in and resolved: what the agent works with.
        case filled
        /// Texts with `${…}` stay as written: what may be shown.
        case verbatim
    }

    let mode: Mode
    let types: [DestinationType]
    let interpolation: Interpolation
    let place: ScalarPlace
    var problems: [Problem] = []
    /// The values that were read as secrets.
    var secrets: [YAMLNode] = []
    /// What `${…}` stood for. Somebody may have put a credential where none belongs.
    var filledIn: Set<Secret> = []
    /// The files that credentials are in, with the place of their names.
    var files: [(file: CredentialFile, position: SourcePosition)] = []

    init(mode: Mode, types: [DestinationType], interpolation: Interpolation, source: SourceText) {
        self.mode = mode
        self.types = types
        self.interpolation = interpolation
        place = ScalarPlace(source: source)
    }

    mutating func report(_ position: SourcePosition, _ message: String) {
        problems.append(Problem(position, message))
    }

    /// Reads `node` as a mapping of `keys`. `label` names it in errors; the top level has an empty one.
    mutating func section(_ node: YAMLNode, _ keys: [KeySpec], label: String) -> ConfigSection {
        var section = ConfigSection(values: [:], positions: [:], position: node.position)
        if case .mapping(let entries) = node.content {
            for entry in entries { read(entry, keys, label: label, into: &section) }
        } else {
            let name = label.isEmpty ? "the configuration" : label
            report(node.position, "\(name) is a mapping of keys and values, not \(node.kindName)")
            return fillDefaults(keys, section)
        }
        for spec in keys where spec.isRequired && section.positions[spec.name] == nil {
            report(node.position, "required key '\(spec.name)' is missing\(Self.place(label))")
        }
        return fillDefaults(keys, section)
    }

    private mutating func read(
        _ entry: YAMLNode.Entry, _ keys: [KeySpec], label: String, into section: inout ConfigSection
    ) {
        guard let spec = keys.first(where: { $0.name == entry.key }) else {
            return reportUnknown(entry, keys, label: label)
        }
        section.positions[spec.name] = entry.value.position
        if entry.value.isNull {
            // An empty list or section is what remains when all its entries are commented out.
            guard spec.kind.isScalar || spec.isRequired else { return }
            return report(entry.keyPosition, "'\(spec.name)' has no value")
        }
        section.values[spec.name] = value(entry.value, spec.kind, key: spec.name)
    }

    /// Tells a key of a later version from a mistake, and a mistake from what was probably meant.
    private mutating func reportUnknown(_ entry: YAMLNode.Entry, _ keys: [KeySpec], label: String) {
        if label.isEmpty, entry.key.hasPrefix(KeyTables.extensionPrefix) { return }
        let name = Quotation.of(entry.key)
        if KeyTables.planned[label]?.contains(entry.key) == true {
            return report(
                entry.keyPosition, "\(name)\(label.isEmpty ? "" : " in \(label)") is not available in this version")
        }
        let names = keys.map(\.name)
        let hint =
            Suggestion.nearest(to: entry.key, in: names).map { "did you mean '\($0)'?" }
            ?? "known keys: \(names.joined(separator: ", "))"
        let mayBeSecret = keys.contains { $0.kind.isSecret }
        problems.append(
            Problem(
                entry.keyPosition, "unknown key \(name)\(Self.place(label)); \(hint)", hidesValue: mayBeSecret))
    }

    private static func place(_ label: String) -> String { label.isEmpty ? " at the top level" : " in \(label)" }

    /// Adds the defaults of absent keys. A section that is absent gets those of its own keys.
    private mutating func fillDefaults(_ keys: [KeySpec], _ section: ConfigSection) -> ConfigSection {
        var section = section
        for spec in keys where section.values[spec.name] == nil {
            if case .section(let inner) = spec.kind,
                section.positions[spec.name] == nil || inner.allSatisfy(\.isOptional)
            {
                section.values[spec.name] = .section(emptySection(inner, at: section.position))
            } else if let text = spec.defaultText {
                section.values[spec.name] = value(
                    YAMLNode(default: text, at: section.position), spec.kind, key: spec.name)
            }
        }
        return section
    }

    private mutating func emptySection(_ keys: [KeySpec], at position: SourcePosition) -> ConfigSection {
        fillDefaults(keys, ConfigSection(values: [:], positions: [:], position: position))
    }

    /// Reads `node` as `kind`; nil after a report.
    mutating func value(_ node: YAMLNode, _ kind: ValueKind, key: String) -> ConfigValue? {
        switch kind {
        case .list(let item): list(node, item, key: key)
        case .section(let keys): .section(section(node, keys, label: key))
        case .brief(let single, let keys): .section(brief(node, single, keys, label: key))
        case .map(.section(let keys)): .section(named(node, keys, key: key))
        case .map: map(node, key: key)
        default: scalar(node, kind, key: key)
        }
    }

    /// A mapping of `keys`, or one value alone for the key `single`.
    private mutating func brief(_ node: YAMLNode, _ single: String, _ keys: [KeySpec], label: String) -> ConfigSection {
        guard case .scalar = node.content, let spec = keys.first(where: { $0.name == single }) else {
            return section(node, keys, label: label)
        }
        var section = ConfigSection(values: [:], positions: [single: node.position], position: node.position)
        section.values[single] = value(node, spec.kind, key: label)
        return fillDefaults(keys, section)
    }

    /// A list, or a single scalar where scalars are listed.
    private mutating func list(_ node: YAMLNode, _ kind: ValueKind, key: String) -> ConfigValue? {
        switch node.content {
        case .sequence(let items):
            return .list(items.compactMap { value($0, kind, key: key) })
        case .scalar where kind.isScalar:
            return scalar(node, kind, key: key).map { .list([$0]) }
        default:
            report(node.position, "'\(key)' is a list, not \(node.kindName); begin each entry with '- '")
            return nil
        }
    }

    /// A mapping with the user's own keys; its values are texts.
    private mutating func map(_ node: YAMLNode, key: String) -> ConfigValue? {
        guard case .mapping(let entries) = node.content else {
            report(node.position, "'\(key)' is a mapping of names and values, not \(node.kindName)")
            return nil
        }
        var values: [String: String] = [:]
        for entry in entries {
            if case .string(let text)? = scalar(entry.value, .string, key: entry.key) { values[entry.key] = text }
        }
        return .map(values)
    }
}

extension KeySpec {
    fileprivate var isOptional: Bool { !isRequired }
}

extension YAMLNode {
    /// A value that stands in a table, not in the file.
    fileprivate init(default text: String, at position: SourcePosition) {
        self.init(content: .scalar(text, .plain), position: position, lastLine: position.line, size: 1)
    }
}
