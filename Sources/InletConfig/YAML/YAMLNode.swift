import InletCore

/// One value of a YAML document, with the place it was written at.
///
/// Values reached through an alias keep the place of their anchor, where the text to correct stands.
struct YAMLNode: Sendable {
    enum Style: Sendable {
        case plain
        case singleQuoted
        case doubleQuoted
        /// `|` or `>`.
        case block
    }

    struct Entry: Sendable {
        var key: String
        var keyPosition: SourcePosition
        var value: YAMLNode
    }

    indirect enum Content: Sendable {
        case scalar(String, Style)
        case sequence([YAMLNode])
        case mapping([Entry])
    }

    var content: Content
    var position: SourcePosition
    /// The last line the value stands on.
    var lastLine: Int
    /// How many values this one holds, itself and keys included.
    var size: Int

    /// `key:` with nothing behind it, `~` or `null`.
    var isNull: Bool {
        if case .scalar(let text, .plain) = content { ["", "~", "null", "Null", "NULL"].contains(text) } else { false }
    }

    var items: [YAMLNode] {
        if case .sequence(let items) = content { items } else { [] }
    }

    /// The value under `key` of a mapping.
    subscript(key: String) -> YAMLNode? {
        guard case .mapping(let entries) = content else { return nil }
        return entries.first { $0.key == key }?.value
    }

    /// What a person calls this kind of value.
    var kindName: String {
        switch content {
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }
}

/// What is wrong at one place, before it is joined with the file's name and text.
struct Problem: Error, Sendable, Equatable {
    var position: SourcePosition
    var message: String
    /// The line's text behind the key is not shown, because it may hold a credential under a mistyped name.
    var hidesValue = false

    init(_ position: SourcePosition, _ message: String, hidesValue: Bool = false) {
        self.position = position
        self.message = message
        self.hidesValue = hidesValue
    }
}
