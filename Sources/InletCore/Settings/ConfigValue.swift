/// Everything about a key except the type of its value, for checks, the JSON schema and the documentation: see `Key`.
package struct KeySpec: Sendable {
    package var name: String
    /// The section of the key within its table; nil for a key of the table itself.
    var section: String?
    package var kind: ValueKind
    package var isRequired: Bool
    /// The default as written in the file; nil if a missing key has its own meaning.
    package var defaultText: String?
    /// For keys that a running agent keeps until a restart: copies the value of the running settings (the second) into
    /// new ones. nil: a reload applies the change.
    package var untilRestart: (@Sendable (inout Settings, Settings) -> Void)?
    /// One sentence for the schema and the documentation.
    package var summary: String

    /// - Parameter name: `level`, or `log.level` for the key of a section.
    package init(
        _ name: String, _ kind: ValueKind, required: Bool = false, default: String? = nil,
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil, _ summary: String
    ) {
        let names = name.split(separator: ".", maxSplits: 1).map(String.init)
        self.name = names.last ?? name
        section = names.count > 1 ? names.first : nil
        self.kind = kind
        isRequired = required
        defaultText = `default`
        self.untilRestart = untilRestart
        self.summary = summary
    }
}

/// The allowed forms of a value.
package indirect enum ValueKind: Sendable {
    /// Any text, with `${env:X}` and `${file:P}` filled in.
    case string
    /// A text that must never be shown; filled in like `string`.
    case secret
    /// A URL whose user and password must not be shown; otherwise like `string`. Read as a secret, shown without them.
    case url
    /// A path; relative ones start at the configuration file's folder, `~/` at HOME.
    case path
    case boolean
    case integer(ClosedRange<Int>)
    /// `8MiB`, `6GB`, `512`: a number of bytes, or a word for none.
    case bytes(orWord: String?)
    /// `250ms`, `5s`, `24h`, or `off` if `offAllowed`.
    case duration(offAllowed: Bool)
    /// `5MiB/s`, `20Mbit/s`, `0`, `off`: see `RateText`.
    case rate
    /// `08:00`: a time of the day, up to `24:00`.
    case time
    case choice([String])
    case list(ValueKind)
    /// A mapping with known keys.
    case section([KeySpec])
    /// The same; a single value sets only this key (`proxy: off`).
    case brief(String, [KeySpec])
    /// A mapping with the user's own keys (`with:`).
    case map(ValueKind)
    /// A mapping of the user's names to sections whose keys depend on their `type`.
    case destinations
}

extension ValueKind {
    /// The value of `text` as a single plain word; nil if it is not of this kind.
    package func value(of text: String) -> ConfigValue? {
        switch self {
        case .string: .string(text)
        case .boolean: ["true": true, "false": false][text.lowercased()].map { .boolean($0) }
        case .integer(let range): Int(text).flatMap { range.contains($0) ? .integer($0) : nil }
        case .bytes(orWord: text): .string(text)
        case .bytes: ByteText.parse(text).map { .bytes($0) }
        case .duration(offAllowed: true) where text == "off": .duration(nil)
        case .duration: DurationText.parse(text).map { .duration($0) }
        case .rate: RateText.parse(text).map { .rate($0) }
        case .time: DaySpan.minute(text).map { _ in .string(text) }
        case .choice(let choices): choices.contains(text) ? .string(text) : nil
        case .list(let item): item.value(of: text).map { .list([$0]) }
        default: nil
        }
    }
}

/// A value that was read and checked against its `ValueKind`.
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

/// A position in the configuration file; both numbers count from 1.
package struct SourcePosition: Sendable, Hashable {
    package var line: Int
    package var column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// A mapping of the configuration as read: defaults are filled in, and all values have the kind of their table.
package struct ConfigSection: Sendable, Equatable {
    package var values: [String: ConfigValue]
    /// The position of each key's value; defaults have none.
    package var positions: [String: SourcePosition]
    /// Where the section starts.
    package var position: SourcePosition

    package init(
        values: [String: ConfigValue] = [:], positions: [String: SourcePosition] = [:],
        position: SourcePosition = SourcePosition(line: 1, column: 1)
    ) {
        self.values = values
        self.positions = positions
        self.position = position
    }

    /// For keys whose names are data; a `Section` reads all others.
    package func string(_ key: String) -> String? { if case .string(let value)? = values[key] { value } else { nil } }
    package func section(_ key: String) -> ConfigSection? {
        if case .section(let value)? = values[key] { value } else { nil }
    }

    /// The position of the value of `key`, or of its section if the value is the default.
    package func position(_ key: String) -> SourcePosition { positions[key] ?? position }
}
