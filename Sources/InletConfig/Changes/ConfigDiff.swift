package import InletCore

/// Finds the differences between two configurations. Compares effective values, with `${…}` filled in, but shows them
/// as `inlet config show` does.
package struct ConfigDiff: Sendable {
    /// An effective value, and its form for display.
    struct ComparedValue: Sendable {
        var value: ConfigValue?
        var shown: ConfigValue?

        init(_ value: ConfigValue?, shown: ConfigValue?) {
            self.value = value
            self.shown = shown
        }

        var section: ConfigSection? { if case .section(let section)? = value { section } else { nil } }

        subscript(_ key: String) -> ComparedValue {
            ComparedValue(section?.values[key], shown: shownSection?.values[key])
        }
        private var shownSection: ConfigSection? { if case .section(let section)? = shown { section } else { nil } }

        /// The entries of a list of sections.
        var entries: [ComparedValue] {
            guard case .list(let values)? = value else { return [] }
            let shown: [ConfigValue?] = if case .list(let items)? = shown { items } else { [] }
            return values.enumerated().map { ComparedValue($1, shown: $0 < shown.count ? shown[$0] : nil) }
        }

        /// The name of a list's entry, as it is shown: what is filled in may be a secret.
        var name: String? {
            let shown = shownSection ?? section
            return shown?.string("path") ?? shown?.string("name")
        }
    }

    private let types: [DestinationType]
    /// Whether both sides are texts of `inlet config show`, without effective values.
    private let isOfTexts: Bool
    /// Whether the top-level key being compared needs a restart.
    private var needsRestart = false
    private var changes: [ConfigChange] = []

    /// - Parameter types: the types both were loaded with.
    package static func changes(
        from old: LoadedConfig, to new: LoadedConfig, types: [DestinationType]
    ) -> [ConfigChange] {
        run(
            ComparedValue(.section(old.filled), shown: .section(old.effective)),
            ComparedValue(.section(new.filled), shown: .section(new.effective)),
            ConfigDiff(types: types, isOfTexts: false))
    }

    /// The same for texts read with `ConfigFile.shown`; secrets compare as equal.
    package static func changes(
        from old: ConfigSection, to new: ConfigSection, types: [DestinationType]
    ) -> [ConfigChange] {
        run(
            ComparedValue(.section(old), shown: .section(old)), ComparedValue(.section(new), shown: .section(new)),
            ConfigDiff(types: types, isOfTexts: true))
    }

    private static func run(_ old: ComparedValue, _ new: ComparedValue, _ comparison: ConfigDiff) -> [ConfigChange] {
        var comparison = comparison
        for spec in ConfigKeys.specs {
            comparison.needsRestart = spec.untilRestart != nil
            comparison.compare(old[spec.name], new[spec.name], spec.kind, [spec.name])
        }
        return comparison.changes
    }

    private mutating func compare(_ old: ComparedValue, _ new: ComparedValue, _ kind: ValueKind, _ keys: [String]) {
        switch kind {
        case .section(let specs), .brief(_, let specs):
            for spec in specs { compare(old[spec.name], new[spec.name], spec.kind, keys + [spec.name]) }
        case .destinations: compareNamed(old, new, keys)
        case .list(.section(let specs)): compareList(old.entries, new.entries, specs, keys)
        default:
            let (from, to) = (old.leaf(kind), new.leaf(kind))
            if isOfTexts ? from != to : old.value != new.value { add(keys, from, to) }
        }
    }

    /// Compares destinations; a different type makes it a different destination.
    private mutating func compareNamed(_ old: ComparedValue, _ new: ComparedValue, _ keys: [String]) {
        let names = Set(old.section?.values.keys.map(\.self) ?? []).union(new.section?.values.keys.map(\.self) ?? [])
        for name in names.sorted() {
            let (before, after) = (old[name], new[name])
            let specs = [before, after].map { types.keys(of: $0.section?.string("type")) }
            if let one = before.section, let other = after.section, one.string("type") == other.string("type") {
                compare(before, after, .section(specs[0]), keys + [name])
            } else {
                add(keys + [name], before.entry(specs[0]), after.entry(specs[1]))
            }
        }
    }

    /// Matches entries by path or name, or by number if an entry has neither.
    private mutating func compareList(
        _ old: [ComparedValue], _ new: [ComparedValue], _ specs: [KeySpec], _ keys: [String]
    ) {
        let names = (old.map(\.name), new.map(\.name))
        let isNamed = Self.areNames(names.0) && Self.areNames(names.1)
        let before = isNamed ? names.0.compactMap(\.self) : old.indices.map { "\($0 + 1)" }
        let after = isNamed ? names.1.compactMap(\.self) : new.indices.map { "\($0 + 1)" }
        let places = Dictionary(zip(after, new), uniquingKeysWith: { first, _ in first })
        for (name, side) in zip(before, old) {
            let key = keys + ["[\(DisplayText.escape(name))]"]
            if let other = places[name] {
                compare(side, other, .section(specs), key)
            } else {
                add(key, side.entry(specs), nil)
            }
        }
        for (name, side) in zip(after, new) where !before.contains(name) {
            add(keys + ["[\(DisplayText.escape(name))]"], nil, side.entry(specs))
        }
        // The order of routes matters: the first match wins.
        let order = (before.filter(after.contains), after.filter(before.contains))
        if keys == ["routes"], order.0 != order.1 {
            add(keys, order.0.joined(separator: ", "), order.1.joined(separator: ", "))
        }
    }

    private static func areNames(_ names: [String?]) -> Bool {
        Set(names).count == names.count && !names.contains(nil)
    }

    private mutating func add(_ keys: [String], _ from: String?, _ to: String?) {
        changes.append(ConfigChange(keys: keys, from: from, to: to, needsRestart: needsRestart))
    }
}

/// One-line values for lists of changes.
extension ConfigDiff.ComparedValue {
    /// nil for a missing value.
    func leaf(_ kind: ValueKind) -> String? {
        guard value != nil else { return nil }
        if case .secret = kind, case .secret? = value { return Self.shownSecret(shown) }
        return shown.map(Self.text) ?? "***"
    }

    /// `${env:KEY}` reveals nothing about its value.
    private static func shownSecret(_ shown: ConfigValue?) -> String {
        if case .string(let written)? = shown { DisplayText.escape(written) } else { "***" }
    }

    private static func text(_ value: ConfigValue) -> String {
        switch value {
        case .string(let text): DisplayText.escape(text)
        case .secret: "***"
        case .list(let items): "[" + items.map(text).joined(separator: ", ") + "]"
        case .map(let values):
            "{"
                + values.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key): \($0.value)") }
                .joined(separator: ", ") + "}"
        case .section: "{…}"
        default: YAMLText.scalar(value)
        }
    }

    /// A whole entry without its defaults; nil for a missing one.
    func entry(_ specs: [KeySpec]) -> String? {
        guard section != nil else { return nil }
        let parts = specs.compactMap { spec -> String? in
            let inner = self[spec.name]
            guard inner.value != nil else { return nil }
            switch spec.kind {
            case .section(let keys), .brief(_, let keys):
                let text = inner.entry(keys)
                return text == nil || text == "{}" ? nil : "\(spec.name): \(text ?? "")"
            case .list(.section(let keys)):
                let items = inner.entries.compactMap { $0.entry(keys) }
                return items.isEmpty ? nil : "\(spec.name): [\(items.joined(separator: ", "))]"
            default:
                guard let text = inner.leaf(spec.kind), text != spec.defaultText, text != "[]", text != "{}" else {
                    return nil
                }
                return "\(spec.name): \(text)"
            }
        }
        return "{" + parts.joined(separator: ", ") + "}"
    }
}
