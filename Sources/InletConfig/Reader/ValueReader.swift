package import InletCore
import SystemPackage

/// Turns nodes into values by the key tables, and collects everything that is wrong on the way.
///
/// A value that cannot be read is reported and replaced by its default, so that the rest is checked too.
struct ValueReader {
    /// Whether texts with `${…}` stay as written, which may be shown; otherwise they are filled in, and paths resolved: what the
    /// agent works with.
    let isVerbatim: Bool
    let types: [DestinationType]
    let interpolation: Interpolation
    let source: SourceText
    var problems: [ConfigIssue] = []
    /// The values that were read as secrets.
    var secrets: [YAMLNode] = []
    /// What `${…}` stood for. Somebody may have put a credential where none belongs.
    var filledIn: Set<Secret> = []
    /// The node of each value of a section, by its place. What is reached through an alias has the place, and the node, of its
    /// anchor.
    var nodes: [SourcePosition: YAMLNode] = [:]
    /// The files that credentials are in, with the place of their names.
    var files: [(path: FilePath, trust: FileTrust, position: SourcePosition)] = []

    mutating func report(_ position: SourcePosition, _ message: String) {
        problems.append(ConfigIssue(position, message))
    }

    /// Reads `node` as a mapping of `keys`. `label` names it in errors; the top level has an empty one.
    mutating func section(_ node: YAMLNode, _ keys: [KeySpec], label: String) -> ConfigSection {
        var section = ConfigSection(position: node.position)
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
        nodes[entry.value.position] = entry.value
        if entry.value.isNull {
            // An empty list or section is what remains when all its entries are commented out.
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

    /// Adds the defaults of absent keys. A section that is absent gets those of its own keys.
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

    /// Reads `node` as `kind`; nil after a report.
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

    /// A mapping of `keys`, or one value alone for the key `single`.
    private mutating func brief(_ node: YAMLNode, _ single: String, _ keys: [KeySpec], label: String) -> ConfigSection {
        guard case .scalar = node.content, let spec = keys.first(where: { $0.name == single }) else {
            return section(node, keys, label: label)
        }
        var section = ConfigSection(positions: [single: node.position], position: node.position)
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

    // MARK: - Destinations

    /// Reads a mapping of the user's names to sections whose keys depend on their `type`; the result's values are
    /// sections under those names.
    private mutating func named(_ node: YAMLNode, key: String) -> ConfigSection {
        var result = ConfigSection(position: node.position)
        guard case .mapping(let entries) = node.content else {
            report(node.position, "'\(key)' is a mapping of names to destinations, not \(node.kindName)")
            return result
        }
        for entry in entries {
            result.positions[entry.key] = entry.keyPosition
            checkName(entry.key, at: entry.keyPosition, of: "a destination")
            result.values[entry.key] = destination(entry).map { .section($0) }
        }
        return result
    }

    /// Reports a name that could not stand in commands, URLs and log lines.
    mutating func checkName(_ name: String, at position: SourcePosition, of what: String) {
        let allowed = name.utf8.allSatisfy { Self.nameBytes.contains($0) }
        if allowed, (1...64).contains(name.utf8.count) { return }
        report(position, "the name of \(what) has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    }

    /// The names of destinations, routes and receivers.
    static let namePattern = "^[A-Za-z0-9._-]{1,64}$"
    private static let nameBytes = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)

    private mutating func destination(_ entry: YAMLNode.Entry) -> ConfigSection? {
        let label = "destination \(SecretMask.quoted(entry.key))"
        guard case .mapping = entry.value.content else {
            report(entry.keyPosition, "\(label) is a mapping with a 'type', not \(entry.value.kindName)")
            return nil
        }
        guard let node = entry.value["type"] else {
            report(entry.value.position, "required key 'type' is missing in \(label)")
            return nil
        }
        if case .scalar(let name, _) = node.content, types.contains(where: { $0.name == name }) {
            return section(entry.value, types.keys(of: name), label: label)
        }
        // Which other keys belong here is not known; only the type is complained about.
        _ = value(node, types.typeKey.kind, key: types.typeKey.name)
        return nil
    }
}

extension [DestinationType] {
    /// The key that every destination has.
    package var typeKey: KeySpec {
        KeySpec("type", .choice(map(\.name)), required: true, "The kind of destination.")
    }

    /// All keys of a destination of that type.
    package func keys(of name: String?) -> [KeySpec] { [typeKey] + (first { $0.name == name }?.keys ?? []) }
}

extension ConfigKeys {
    /// Top-level keys that begin so are not read: a place for anchors to be used further down.
    static let extensionPrefix = "x-"
}

extension ValueKind {
    /// The names of all keys below this kind whose values are secret.
    var secretNames: [String] {
        switch self {
        case .section(let keys), .brief(_, let keys):
            keys.flatMap { $0.kind.isSecret ? [$0.name] : $0.kind.secretNames }
        case .list(let kind), .map(let kind): kind.secretNames
        default: []
        }
    }

    /// The places of all credentials below this kind, addresses with a login among them: `auth.api_key`.
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
