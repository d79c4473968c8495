package import SystemPackage

/// A key of the configuration: its name, its type, its default and its help.
///
/// A key is a member of a `KeyTable`, and declared only there. The reader's checks, the JSON schema, the documentation,
/// `inlet config show` and `config diff` follow from it. A key's value is `section.member`.
package struct Key<Value: Sendable>: Sendable {
    package let spec: KeySpec
    /// The value in the section of the key.
    let read: @Sendable (ConfigSection) -> Value

    /// The default value.
    package var standard: Value { read(ConfigSection()) }

    /// - Parameter section: the section of the key's table.
    package func value(in section: ConfigSection) -> Value { read(owner(in: section)) }

    /// The section of the key: that of its table, or the one in it with the prefix of the key's name.
    func owner(in section: ConfigSection) -> ConfigSection {
        guard let name = spec.section else { return section }
        return section.section(name) ?? ConfigSection(position: section.position)
    }
}

/// The keys of a section as members, in the order in which they are shown. A member that is a table itself shares its
/// keys between sections. Keys must be stored members, because `Mirror` finds no computed or static ones.
package protocol KeyTable: Sendable {
    /// The keys in order; keys of a section are within it.
    var specs: [KeySpec] { get }
}

extension Key: KeyTable {
    package var specs: [KeySpec] { [spec] }
}

extension KeyTable {
    package var specs: [KeySpec] {
        var specs: [KeySpec] = []
        for spec in Mirror(reflecting: self).children.flatMap({ ($0.value as? any KeyTable)?.specs ?? [] }) {
            guard let section = spec.section else {
                specs.append(spec)
                continue
            }
            guard let place = specs.lastIndex(where: { $0.name == section }),
                case .section(let keys) = specs[place].kind
            else { preconditionFailure("declare the section \(section) above its keys") }
            specs[place].kind = .section(keys + [spec])
        }
        return specs
    }
}

/// A section of the configuration with the keys of its table: `section.settle` is the value of the key `settle`, or its
/// default.
@dynamicMemberLookup
package struct Section<Table: KeyTable>: Sendable {
    package let values: ConfigSection
    package let table: Table

    package init(_ table: Table, _ values: ConfigSection = ConfigSection()) {
        self.table = table
        self.values = values
    }

    package subscript<Value>(dynamicMember key: KeyPath<Table, Key<Value>>) -> Value {
        table[keyPath: key].value(in: values)
    }

    package subscript<Group: KeyTable>(dynamicMember group: KeyPath<Table, Group>) -> Section<Group> {
        Section<Group>(table[keyPath: group], values)
    }

    package func keyName<Value>(_ key: KeyPath<Table, Key<Value>>) -> String { table[keyPath: key].spec.name }

    /// The position of the value of `key`; nil if the file has none.
    package func place<Value>(_ key: KeyPath<Table, Key<Value>>) -> SourcePosition? {
        table[keyPath: key].owner(in: values).positions[keyName(key)]
    }

    /// The position of the value of `key`, or of its section if the value is the default.
    package func position<Value>(_ key: KeyPath<Table, Key<Value>>) -> SourcePosition {
        table[keyPath: key].owner(in: values).position(keyName(key))
    }
}

/// The form of a key's values in the file, and their type in Swift.
package struct KeyType<Value: Sendable>: Sendable {
    package let kind: ValueKind
    let value: @Sendable (ConfigValue) -> Value?
}

// MARK: - Keys

extension Key {
    /// A key with a default, written as in the file: a text, a number or a flag.
    package init(
        _ name: String, _ type: KeyType<Value>, default written: some LosslessStringConvertible,
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil, _ summary: String
    ) {
        let text = String(written)
        let value = type.kind.value(of: text).flatMap(type.value)
        guard let value else { preconditionFailure("the default of \(name) is not valid: \(text)") }
        let spec = KeySpec(name, type.kind, default: text, untilRestart: untilRestart, summary)
        self.spec = spec
        read = { $0.values[spec.name].flatMap(type.value) ?? value }
    }

    package init(
        _ name: String, _ type: KeyType<Value>, default value: Value,
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil, _ summary: String
    ) where Value: RawRepresentable<String> {
        self.init(name, type, default: value.rawValue, untilRestart: untilRestart, summary)
    }

    /// A key without a default; nil if the file has no value, or an invalid one.
    package init<Given>(
        _ name: String, _ type: KeyType<Given>, required: Bool = false,
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil, _ summary: String
    ) where Value == Given? {
        let spec = KeySpec(name, type.kind, required: required, untilRestart: untilRestart, summary)
        self.spec = spec
        read = { $0.values[spec.name].flatMap(type.value) }
    }

    /// A mapping with the keys of `table`; a missing mapping has their defaults.
    ///
    /// - Parameter brief: the key that a single value, instead of the mapping, sets.
    package init<Table>(
        _ name: String, _ table: Table, brief: String? = nil, required: Bool = false,
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil, _ summary: String
    ) where Value == Section<Table> {
        let keys = table.specs
        let kind: ValueKind = if let brief { .brief(brief, keys) } else { .section(keys) }
        spec = KeySpec(name, kind, required: required, untilRestart: untilRestart, summary)
        read = { Section(table, $0.section(name) ?? ConfigSection(position: $0.position)) }
    }

    /// A list of mappings with the keys of `table`.
    package init<Table>(_ name: String, list table: Table, _ summary: String) where Value == [Section<Table>] {
        spec = KeySpec(name, .list(.section(table.specs)), summary)
        read = { section in
            guard case .list(let items)? = section.values[name] else { return [] }
            return items.compactMap { if case .section(let entry) = $0 { Section(table, entry) } else { nil } }
        }
    }
}

// MARK: - Types

extension KeyType where Value == String {
    package static var string: Self { Self(kind: .string, value: \.text) }
    /// One of these words.
    package static func choice(_ words: [String]) -> Self { Self(kind: .choice(words), value: \.text) }
}

extension KeyType where Value == FilePath {
    package static var path: KeyType<FilePath> { KeyType(kind: .path) { $0.text.map { FilePath($0) } } }
}

extension KeyType where Value == Secret {
    package static var secret: Self { Self(kind: .secret, value: \.secret) }
    package static var url: Self { Self(kind: .url, value: \.secret) }
}

extension KeyType where Value == Bool {
    package static var boolean: Self { Self(kind: .boolean) { if case .boolean(let flag) = $0 { flag } else { nil } } }
}

extension KeyType where Value == Int {
    package static func integer(_ range: ClosedRange<Int>) -> Self {
        Self(kind: .integer(range)) { if case .integer(let number) = $0 { number } else { nil } }
    }
    /// Minutes since midnight.
    package static var time: Self { Self(kind: .time) { $0.text.flatMap(DaySpan.minute) } }
}

extension KeyType where Value == Int64 {
    package static var bytes: Self { Self(kind: .bytes(orWord: nil), value: \.bytes) }
}

extension KeyType where Value == Int64? {
    /// nil is `auto`.
    package static var bytesOrAuto: Self { Self(kind: .bytes(orWord: "auto")) { .some($0.bytes) } }
    /// nil is `off`.
    package static var bytesOrOff: Self { Self(kind: .bytes(orWord: "off")) { .some($0.bytes) } }
    /// Bytes per second; nil is no limit.
    package static var rate: Self { Self(kind: .rate) { if case .rate(let rate) = $0 { .some(rate) } else { nil } } }
}

extension KeyType where Value == Duration {
    package static var duration: Self {
        Self(kind: .duration(offAllowed: false)) { if case .duration(let span?) = $0 { span } else { nil } }
    }
}

extension KeyType where Value == Duration? {
    /// nil is `off`.
    package static var durationOrOff: Self {
        Self(kind: .duration(offAllowed: true)) { if case .duration(let span) = $0 { .some(span) } else { nil } }
    }
}

extension KeyType where Value == [String: String] {
    /// The user's own names, each with a text.
    package static var texts: Self { Self(kind: .map(.string)) { if case .map(let texts) = $0 { texts } else { nil } } }
}

extension KeyType where Value == ConfigSection {
    /// A mapping whose keys are the members below that begin with its name.
    package static var section: Self {
        Self(kind: .section([])) { if case .section(let section) = $0 { section } else { nil } }
    }
    /// The user's own names, each with a section whose keys follow from its `type`.
    package static var destinations: Self {
        Self(kind: .destinations) { if case .section(let section) = $0 { section } else { nil } }
    }
}

extension KeyType where Value: RawRepresentable<String> {
    package static func choice(_ values: [Value]) -> Self {
        Self(kind: .choice(values.map(\.rawValue))) { $0.text.flatMap(Value.init(rawValue:)) }
    }
    package static func choice(_: Value.Type) -> Self where Value: CaseIterable { choice(Array(Value.allCases)) }
}

extension KeyType {
    /// A list of single values; one alone is a list too.
    package static func list<Item>(_ item: KeyType<Item>) -> Self where Value == [Item] {
        Self(kind: .list(item.kind)) { if case .list(let items) = $0 { items.compactMap(item.value) } else { nil } }
    }
}

extension ConfigValue {
    fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
    fileprivate var secret: Secret? { if case .secret(let secret) = self { secret } else { nil } }
    fileprivate var bytes: Int64? { if case .bytes(let count) = self { count } else { nil } }
}
