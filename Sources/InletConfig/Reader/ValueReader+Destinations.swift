import InletCore

extension ValueReader {
    /// Reads a mapping of the user's names to sections whose keys depend on their `type`; the result's values are
    /// sections under those names.
    mutating func named(_ node: YAMLNode, _ common: [KeySpec], key: String) -> ConfigSection {
        var result = ConfigSection(values: [:], positions: [:], position: node.position)
        guard case .mapping(let entries) = node.content else {
            report(node.position, "'\(key)' is a mapping of names to destinations, not \(node.kindName)")
            return result
        }
        for entry in entries {
            result.positions[entry.key] = entry.keyPosition
            checkName(entry.key, at: entry.keyPosition, of: "a destination")
            result.values[entry.key] = destination(entry, common).map { .section($0) }
        }
        return result
    }

    /// Reports a name that could not stand in commands, URLs and log lines.
    mutating func checkName(_ name: String, at position: SourcePosition, of what: String) {
        let allowed = name.utf8.allSatisfy { Self.nameBytes.contains($0) }
        if allowed, (1...64).contains(name.utf8.count) { return }
        report(position, "the name of \(what) has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    }

    private static let nameBytes = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)

    private mutating func destination(_ entry: YAMLNode.Entry, _ common: [KeySpec]) -> ConfigSection? {
        let label = "destination \(Quotation.of(entry.key))"
        guard case .mapping = entry.value.content else {
            report(entry.keyPosition, "\(label) is a mapping with a 'type', not \(entry.value.kindName)")
            return nil
        }
        guard let node = entry.value["type"] else {
            report(entry.value.position, "required key 'type' is missing in \(label)")
            return nil
        }
        if case .scalar(let name, _) = node.content, let type = types.first(where: { $0.name == name }) {
            return section(entry.value, common + type.keys, label: label)
        }
        // Which other keys belong here is not known; only the type is complained about.
        if let spec = common.first { _ = value(node, spec.kind, key: spec.name) }
        return nil
    }
}
