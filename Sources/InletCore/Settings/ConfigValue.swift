/// What the reader's checks, the JSON schema and the documentation know of one key, whatever the type of its value: see `Key`.
package struct KeySpec: Sendable {
    package var name: String
    /// The section of its table that the key is in; nil for one of the table itself.
    var section: String?
    package var kind: ValueKind
    package var isRequired: Bool
    /// The value used when the key is absent, as a person would write it; nil where absence has its own meaning.
    package var defaultText: String?
    /// For keys whose value a running agent keeps until it is restarted: puts that of the running settings (the second) into
    /// new ones. nil = a change takes effect with the reload.
    package var untilRestart: (@Sendable (inout Settings, Settings) -> Void)?
    /// One sentence for the schema and the docs.
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
    /// `8MiB`, `6GB`, `512`: a count of bytes, or a word that stands for none.
    case bytes(orWord: String?)
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
    /// A mapping of the user's names to sections, whose keys follow from their `type`.
    case destinations
}

extension ValueKind {
    /// What `text`, written as a single plain value, comes to; nil where it is none of this kind.
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

    package init(
        values: [String: ConfigValue] = [:], positions: [String: SourcePosition] = [:],
        position: SourcePosition = SourcePosition(line: 1, column: 1)
    ) {
        self.values = values
        self.positions = positions
        self.position = position
    }

    /// For keys whose names are data; others are read through a `Section`.
    package func string(_ key: String) -> String? { if case .string(let value)? = values[key] { value } else { nil } }
    package func section(_ key: String) -> ConfigSection? {
        if case .section(let value)? = values[key] { value } else { nil }
    }

    /// Where the value of `key` stands, or its section when it came from the defaults.
    package func position(_ key: String) -> SourcePosition { positions[key] ?? position }
}
