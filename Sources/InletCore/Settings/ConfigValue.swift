/// One key that a section of the configuration understands.
///
/// Tables of these are the single source of the reader's checks, the JSON schema and the documentation.
package struct KeySpec: Sendable {
    package var name: String
    package var kind: ValueKind
    package var isRequired: Bool
    /// The value used when the key is absent, as a person would write it; nil where absence has its own meaning.
    package var defaultText: String?
    /// One sentence for the schema and the docs.
    package var summary: String

    package init(_ name: String, _ kind: ValueKind, required: Bool = false, default: String? = nil, _ summary: String) {
        self.name = name
        self.kind = kind
        isRequired = required
        defaultText = `default`
        self.summary = summary
    }
}

/// What a value may look like.
package indirect enum ValueKind: Sendable {
    /// Any text. `${env:X}` and `${file:P}` are filled in.
    case string
    /// Text that must not show anywhere; filled in like `string`.
    case secret
    /// An address whose user and password must not show; otherwise like `string`. Read as a secret, shown without them.
    case url
    /// A path; relative ones are taken from the configuration file's folder, `~/` from HOME.
    case path
    case boolean
    case integer(ClosedRange<Int>)
    /// `8MiB`, `6GB`, `512`: a count of bytes.
    case bytes
    /// As `bytes`, or the word `auto`.
    case bytesOrAuto
    /// As `bytes`, or the word `off`.
    case bytesOrOff
    /// `250ms`, `5s`, `24h`, or `off` where `offAllowed`.
    case duration(offAllowed: Bool)
    /// `5MiB/s`, `20Mbit/s`, `0`, `off`: see `RateText`.
    case rate
    /// `08:00`: a time of the day, up to `24:00`.
    case time
    case choice([String])
    case list(ValueKind)
    /// A mapping with known keys.
    case section([KeySpec])
    /// The same; a single value is the mapping with this one key (`proxy: off`).
    case brief(String, [KeySpec])
    /// A mapping with the user's own keys (`with:`).
    case map(ValueKind)
}

/// A value that has been read and checked against its `ValueKind`.
package indirect enum ConfigValue: Sendable, Equatable {
    case string(String)
    case secret(Secret)
    case boolean(Bool)
    case integer(Int)
    case bytes(Int64)
    /// nil is `off`.
    case duration(Duration?)
    /// Bytes per second; nil is no limit.
    case rate(Int64?)
    case list([ConfigValue])
    case section(ConfigSection)
    case map([String: String])
}

/// Where in the configuration file something stands; both count from 1.
package struct SourcePosition: Sendable, Hashable {
    package var line: Int
    package var column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// A mapping of the configuration after reading: defaults filled in, every value of the kind its table asks for.
package struct ConfigSection: Sendable, Equatable {
    package var values: [String: ConfigValue]
    /// Where each key's value stands; keys filled from defaults have none.
    package var positions: [String: SourcePosition]
    /// Where the section itself begins.
    package var position: SourcePosition

    package init(values: [String: ConfigValue], positions: [String: SourcePosition], position: SourcePosition) {
        self.values = values
        self.positions = positions
        self.position = position
    }

    package func string(_ key: String) -> String? { if case .string(let value)? = values[key] { value } else { nil } }
    package func secret(_ key: String) -> Secret? { if case .secret(let value)? = values[key] { value } else { nil } }
    package func boolean(_ key: String) -> Bool? { if case .boolean(let value)? = values[key] { value } else { nil } }
    package func integer(_ key: String) -> Int? { if case .integer(let value)? = values[key] { value } else { nil } }
    /// nil when absent, `auto` or `off`.
    package func bytes(_ key: String) -> Int64? { if case .bytes(let value)? = values[key] { value } else { nil } }
    package func section(_ key: String) -> ConfigSection? {
        if case .section(let value)? = values[key] { value } else { nil }
    }
    package func map(_ key: String) -> [String: String] {
        if case .map(let value)? = values[key] { value } else { [:] }
    }

    /// The duration under `key`; nil when absent or `off`.
    package func duration(_ key: String) -> Duration? {
        if case .duration(let value)? = values[key] { value } else { nil }
    }

    /// The rate under `key`: nil when absent, and within it when there is no limit.
    package func rate(_ key: String) -> Int64?? {
        if case .rate(let value)? = values[key] { .some(value) } else { .none }
    }

    /// The entries of a list of sections under `key`.
    package func sections(_ key: String) -> [ConfigSection] {
        guard case .list(let items)? = values[key] else { return [] }
        return items.compactMap { if case .section(let section) = $0 { section } else { nil } }
    }

    /// The texts of a list under `key`; nil when absent.
    package func strings(_ key: String) -> [String]? {
        guard case .list(let items)? = values[key] else { return nil }
        return items.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
}
