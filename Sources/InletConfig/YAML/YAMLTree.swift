import InletCore

/// The values of a YAML text without their places and styles, for comparing two texts.
indirect enum YAMLTree: Sendable {
    case scalar(String)
    case list([YAMLTree])
    case map([(key: String, value: YAMLTree)])

    init(_ node: YAMLNode) {
        self =
            switch node.content {
            case .scalar(let text, _): .scalar(node.isNull ? "" : text)
            case .sequence(let items): .list(items.map { YAMLTree($0) })
            case .mapping(let entries): .map(entries.map { ($0.key, YAMLTree($0.value)) })
            }
    }

    init(_ values: JSONObject) {
        self = .map(values.compactMap { key, value in YAMLTree(value).map { (key, $0) } })
    }

    /// nil for `null`, and for objects without any value.
    init?(_ value: JSONValue) {
        switch value {
        case .null: return nil
        case .boolean(let flag): self = .scalar(flag ? "true" : "false")
        case .number(let digits): self = .scalar(digits)
        case .string(let text): self = .scalar(text)
        case .array(let items): self = .list(items.compactMap { YAMLTree($0) })
        case .object(let members):
            let tree = YAMLTree(members)
            if tree.isEmpty { return nil }
            self = tree
        }
    }

    var isEmpty: Bool {
        switch self {
        case .scalar(let text): text.isEmpty
        case .list(let items): items.isEmpty
        case .map(let entries): entries.isEmpty
        }
    }

    /// With the new values of a `ConfigEdit.Change.set`; nil where no key is left.
    func patched(_ values: JSONObject, _ keys: [KeySpec]) -> YAMLTree? {
        guard case .map(var entries) = self else { return YAMLTree(values) }
        for (key, value) in values {
            let place = entries.firstIndex { $0.key == key }
            var new = YAMLTree(value)
            if case .object(let inner) = value, let place, case .map = entries[place].value,
                let innerKeys = keys.first(where: { $0.name == key })?.kind.patchedKeys
            {
                new = entries[place].value.patched(inner, innerKeys)
            }
            if let place {
                if let new { entries[place].value = new } else { entries.remove(at: place) }
            } else if let new {
                entries.append((key, new))
            }
        }
        return entries.isEmpty ? nil : .map(entries)
    }

    /// Adds an entry to a list at the top.
    mutating func append(_ entry: YAMLTree, name: String?, to key: String) {
        guard case .map(var entries) = self else { return }
        let place = entries.firstIndex { $0.key == key }
        let added: YAMLTree
        switch place.map({ entries[$0].value }) {
        case .list(let items)?: added = .list(items + [entry])
        case .map(let items)?: added = .map(items + [(name ?? "", entry)])
        default: added = name.map { .map([($0, entry)]) } ?? .list([entry])
        }
        if let place { entries[place].value = added } else { entries.append((key, added)) }
        self = .map(entries)
    }

    /// Changes an entry of a list at the top; nil removes it.
    mutating func change(_ key: String, _ index: Int, _ name: String?, _ body: (YAMLTree) -> YAMLTree?) {
        guard case .map(var entries) = self, let place = entries.firstIndex(where: { $0.key == key }) else { return }
        switch entries[place].value {
        case .list(var items):
            if let new = body(items[index]) { items[index] = new } else { items.remove(at: index) }
            entries[place].value = items.isEmpty ? .scalar("") : .list(items)
        case .map(var items):
            if let new = body(items[index].value) { items[index].value = new } else { items.remove(at: index) }
            entries[place].value = items.isEmpty ? .scalar("") : .map(items)
        case .scalar: break
        }
        self = .map(entries)
    }
}

extension YAMLTree: Equatable {
    static func == (left: YAMLTree, right: YAMLTree) -> Bool {
        switch (left, right) {
        case (.scalar(let one), .scalar(let other)): one == other
        case (.list(let one), .list(let other)): one == other
        case (.map(let one), .map(let other)):
            one.count == other.count
                && Dictionary(one.map { ($0.key, $0.value) }) { first, _ in first }
                    == Dictionary(other.map { ($0.key, $0.value) }) { first, _ in first }
        default: left.isEmpty && right.isEmpty
        }
    }
}

extension ValueKind {
    /// The keys that a new object changes one by one; nil where it replaces the whole value.
    var patchedKeys: [KeySpec]? {
        switch self {
        case .section(let keys), .brief(_, let keys): keys
        default: nil
        }
    }
}
