package import InletCore
import SystemPackage

/// Turns nodes into values with the key tables, and collects all errors.
///
/// An unreadable value is reported and replaced by its default, so that the rest is checked too.
struct ValueReader {
    /// true leaves `${…}` as written, for showing the values. false fills it in and resolves paths, for the agent.
    let isVerbatim: Bool
    let types: [DestinationType]
    let interpolation: Interpolation
    let source: SourceText
    var problems: [ConfigIssue] = []
    /// The values that were read as secrets.
    var secrets: [YAMLNode] = []
    /// The values filled in for `${…}`. A user may have put a credential anywhere.
    var filledIn: Set<Secret> = []
    /// The node of each value of a section, by position. A value behind an alias has the position and node of its
    /// anchor.
    var nodes: [SourcePosition: YAMLNode] = [:]
    /// The files with credentials, each with the position of its path.
    var files: [(path: FilePath, trust: FileTrust, position: SourcePosition)] = []

    mutating func report(_ position: SourcePosition, _ message: String) {
        problems.append(ConfigIssue(position, message))
    }

    /// Reads `node` as a mapping of `keys`. `label` names it in errors; it is empty at the top level.
    mutating func section(_ node: YAMLNode, _ keys: [KeySpec], label: String) -> ConfigSection {
        var section = ConfigSection(position: node.position)
        if case .mapping(let entries) = node.content {
            for entry in entries { read(entry, keys, label: label, into: &section) }
        } else {
            let name = label.isEmpty ? "the configuration" : label
            report(node.position, "\(name) must be a mapping of keys and values, not \(node.kindName)")
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
        nodes[entry.value.position] = entry.value
        if entry.value.isNull {
            // A list or section whose entries are all commented out is empty.
            guard spec.kind.isScalar || spec.isRequired else { return }
            return report(entry.keyPosition, "'\(spec.name)' has no value")
        }
        section.values[spec.name] = value(entry.value, spec.kind, key: spec.name)
    }

    private mutating func reportUnknown(_ entry: YAMLNode.Entry, _ keys: [KeySpec], label: String) {
        if label.isEmpty, entry.key.hasPrefix(ConfigKeys.extensionPrefix) { return }
        let name = SecretMask.quoted(entry.key)
        let names = keys.map(\.name)
        let hint =
            Suggestion.nearest(to: entry.key, in: names).map { "did you mean '\($0)'?" }
            ?? "known keys: \(names.joined(separator: ", "))"
        let mayBeSecret = keys.contains { $0.kind.isSecret }
        problems.append(
            ConfigIssue(
                entry.keyPosition, "unknown key \(name)\(Self.place(label)); \(hint)", hidesValue: mayBeSecret))
    }

    private static func place(_ label: String) -> String { label.isEmpty ? " at the top level" : " in \(label)" }

    /// Adds the defaults of absent keys, and those of the keys in absent sections.
    private func fillDefaults(_ keys: [KeySpec], _ section: ConfigSection) -> ConfigSection {
        var section = section
        for spec in keys where section.values[spec.name] == nil {
            if case .section(let inner) = spec.kind,
                section.positions[spec.name] == nil || !inner.contains(where: \.isRequired)
            {
                section.values[spec.name] = .section(emptySection(inner, at: section.position))
            } else if let text = spec.defaultText {
                section.values[spec.name] = spec.kind.value(of: text)
            }
        }
        return section
    }

    private func emptySection(_ keys: [KeySpec], at position: SourcePosition) -> ConfigSection {
        fillDefaults(keys, ConfigSection(position: position))
    }

    /// Reads `node` as `kind`; nil after an error.
    mutating func value(_ node: YAMLNode, _ kind: ValueKind, key: String) -> ConfigValue? {
        switch kind {
        case .list(let item): list(node, item, key: key)
        case .section(let keys): .section(section(node, keys, label: key))
        case .brief(let single, let keys): .section(brief(node, single, keys, label: key))
        case .destinations: .section(named(node, key: key))
        case .map: map(node, key: key)
        default: scalar(node, kind, key: key)
        }
    }

    /// A mapping of `keys`, or a single value for the key `single`.
    private mutating func brief(_ node: YAMLNode, _ single: String, _ keys: [KeySpec], label: String) -> ConfigSection {
        guard case .scalar = node.content, let spec = keys.first(where: { $0.name == single }) else {
            return section(node, keys, label: label)
        }
        var section = ConfigSection(positions: [single: node.position], position: node.position)
        section.values[single] = value(node, spec.kind, key: label)
        return fillDefaults(keys, section)
    }

    /// A list; for lists of scalars, a single scalar too.
    private mutating func list(_ node: YAMLNode, _ kind: ValueKind, key: String) -> ConfigValue? {
        switch node.content {
        case .sequence(let items):
            return .list(items.compactMap { value($0, kind, key: key) })
        case .scalar where kind.isScalar:
            return scalar(node, kind, key: key).map { .list([$0]) }
        default:
            report(node.position, "'\(key)' must be a list, not \(node.kindName); start each entry with '- '")
            return nil
        }
    }

    /// A mapping with the user's own keys and texts as values.
    private mutating func map(_ node: YAMLNode, key: String) -> ConfigValue? {
        guard case .mapping(let entries) = node.content else {
            report(node.position, "'\(key)' must be a mapping of names and values, not \(node.kindName)")
            return nil
        }
        var values: [String: String] = [:]
        for entry in entries {
            if case .string(let text)? = scalar(entry.value, .string, key: entry.key) { values[entry.key] = text }
        }
        return .map(values)
    }

    // MARK: - Destinations

    /// Reads a mapping of the user's names to sections whose keys depend on their `type`. The result's values are the
    /// sections under those names.
    private mutating func named(_ node: YAMLNode, key: String) -> ConfigSection {
        var result = ConfigSection(position: node.position)
        guard case .mapping(let entries) = node.content else {
            report(node.position, "'\(key)' must be a mapping of names to destinations, not \(node.kindName)")
            return result
        }
        for entry in entries {
            result.positions[entry.key] = entry.keyPosition
            checkName(entry.key, at: entry.keyPosition, of: "a destination")
            result.values[entry.key] = destination(entry).map { .section($0) }
        }
        return result
    }

    /// Reports a name that commands, URLs and log lines cannot contain.
    mutating func checkName(_ name: String, at position: SourcePosition, of what: String) {
        let allowed = name.utf8.allSatisfy { Self.nameBytes.contains($0) }
        if allowed, (1...64).contains(name.utf8.count) { return }
        report(position, "the name of \(what) must have 1 to 64 characters of A-Z a-z 0-9 . _ -")
    }

    /// The names of destinations, routes and receivers.
    static let namePattern = "^[A-Za-z0-9._-]{1,64}$"
    private static let nameBytes = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)

    private mutating func destination(_ entry: YAMLNode.Entry) -> ConfigSection? {
        let label = "destination \(SecretMask.quoted(entry.key))"
        guard case .mapping = entry.value.content else {
            report(entry.keyPosition, "\(label) must be a mapping with a 'type', not \(entry.value.kindName)")
            return nil
        }
        guard let node = entry.value["type"] else {
            report(entry.value.position, "required key 'type' is missing in \(label)")
            return nil
        }
        if case .scalar(let name, _) = node.content, types.contains(where: { $0.name == name }) {
            return section(entry.value, types.keys(of: name), label: label)
        }
        // Its other keys depend on the type, so only the type is reported.
        _ = value(node, types.typeKey.kind, key: types.typeKey.name)
        return nil
    }
}

extension [DestinationType] {
    /// The key that all destinations share.
    package var typeKey: KeySpec {
        KeySpec("type", .choice(map(\.name)), required: true, "The kind of destination.")
    }

    /// All keys of a destination of type `name`.
    package func keys(of name: String?) -> [KeySpec] { [typeKey] + (first { $0.name == name }?.keys ?? []) }
}

extension ConfigKeys {
    /// Inlet ignores top-level keys with this prefix: a place for anchors.
    static let extensionPrefix = "x-"
}

extension ValueKind {
    /// The names of all secret keys within this kind.
    var secretNames: [String] {
        switch self {
        case .section(let keys), .brief(_, let keys):
            keys.flatMap { $0.kind.isSecret ? [$0.name] : $0.kind.secretNames }
        case .list(let kind), .map(let kind): kind.secretNames
        default: []
        }
    }

    /// The paths of all credentials within this kind, including addresses with a login: `auth.api_key`.
    package var secretPaths: [String] {
        switch self {
        case .section(let keys), .brief(_, let keys):
            keys.flatMap { spec in
                switch spec.kind {
                case .secret, .url: [spec.name]
                default: spec.kind.secretPaths.map { $0.isEmpty ? spec.name : "\(spec.name).\($0)" }
                }
            }
        case .list(let kind), .map(let kind): kind.isScalar ? (kind.isSecret ? [""] : []) : kind.secretPaths
        default: []
        }
    }

    var isSecret: Bool {
        switch self {
        case .secret: true
        case .list(let kind), .map(let kind): kind.isSecret
        default: false
        }
    }

    var isScalar: Bool {
        switch self {
        case .list, .section, .brief, .map, .destinations: false
        default: true
        }
    }
}
