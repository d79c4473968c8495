import InletCore

/// Reads one YAML document into nodes, within limits that hold for any input.
///
/// Aliases and merge keys (`<<`, <https://yaml.org/type/merge.html>) are resolved; tags are refused.
struct YAMLDocument {
    static let maximumBytes = 1 << 20
    static let maximumDepth = 64
    /// The most values after resolving aliases; stops alias bombs.
    static let maximumNodes = 10_000

    private let events: YAMLEvents
    private var anchors: [String: YAMLNode] = [:]
    private var openAnchors: Set<String> = []
    private var nodes = 0

    /// The root of the only document in `bytes`, which must have no byte order mark.
    static func parse(_ bytes: [UInt8]) throws(ConfigIssue) -> YAMLNode {
        var document = YAMLDocument(events: try YAMLEvents(bytes))
        return try document.read()
    }

    private mutating func read() throws(ConfigIssue) -> YAMLNode {
        guard let first = try events.begin() else { throw Self.empty }
        let root = try node(from: first, depth: 1)
        try events.end("a configuration has only one")
        if root.isNull { throw Self.empty }
        return root
    }

    private static let empty = ConfigIssue(
        .start, "the file is empty; `inlet init` writes a configuration to start from")

    /// The node that `event` begins. Its anchor is usable only after its end.
    private mutating func node(from event: YAMLEvent, depth: Int) throws(ConfigIssue) -> YAMLNode {
        try Self.check(depth: depth, at: event.start)
        if event.tag != nil { throw ConfigIssue(event.start, YAMLEvent.tagRefusal) }
        if let anchor = event.anchor { openAnchors.insert(anchor) }
        let node = try content(of: event, depth: depth)
        if let anchor = event.anchor {
            openAnchors.remove(anchor)
            anchors[anchor] = node
        }
        return node
    }

    private mutating func content(of event: YAMLEvent, depth: Int) throws(ConfigIssue) -> YAMLNode {
        switch event.kind {
        case .scalar(let text, let style):
            try count(1, at: event.start)
            // The end of a block scalar is at the beginning of the next line.
            let lastLine =
                event.end.column == 1 && event.end.line > event.start.line ? event.end.line - 1 : event.end.line
            return YAMLNode(
                content: .scalar(text, style), position: event.start, end: event.end, lastLine: lastLine, size: 1)
        case .alias(let name):
            return try alias(name, at: event.start)
        case .sequenceStart:
            return try sequence(at: event.start, depth: depth)
        case .mappingStart:
            return try mapping(at: event.start, depth: depth)
        default:
            throw ConfigIssue(event.start, "this is not valid YAML")
        }
    }

    private mutating func sequence(at start: SourcePosition, depth: Int) throws(ConfigIssue) -> YAMLNode {
        try count(1, at: start)
        var items: [YAMLNode] = []
        while true {
            let event = try events.next()
            if case .sequenceEnd = event.kind {
                let size = items.reduce(1) { $0 + $1.size }
                return YAMLNode(
                    content: .sequence(items), position: start, end: Self.end(of: event, after: items.last, start),
                    lastLine: event.end.line, size: size, isFlow: event.end != event.start)
            }
            items.append(try node(from: event, depth: depth + 1))
        }
    }

    private mutating func mapping(at start: SourcePosition, depth: Int) throws(ConfigIssue) -> YAMLNode {
        try count(1, at: start)
        var own: [YAMLNode.Entry] = []
        var lines: [String: Int] = [:]
        var merged: [YAMLNode.Entry] = []
        var last: YAMLNode?
        while true {
            let event = try events.next()
            if case .mappingEnd = event.kind {
                // Own keys override merged ones, and earlier merged keys later ones.
                var known = Set(lines.keys)
                let all = own + merged.filter { known.insert($0.key).inserted }
                let size = all.reduce(1) { $0 + $1.value.size + 1 }
                return YAMLNode(
                    content: .mapping(all), position: start, end: Self.end(of: event, after: last, start),
                    lastLine: event.end.line, size: size, isFlow: event.end != event.start)
            }
            let key = try node(from: event, depth: depth + 1)
            guard case .scalar(let name, let style) = key.content else {
                throw ConfigIssue(event.start, "a key must be a plain word, not \(key.kindName)")
            }
            let value = try node(from: try events.next(), depth: depth + 1)
            // An alias is as long as its name, and ends on the line of its key.
            last = value.position < key.position ? key : value
            if name == "<<", style == .plain {
                merged += try Self.merged(value)
            } else if let line = lines[name] {
                let shown = SecretMask.quoted(name)
                throw ConfigIssue(key.position, "key \(shown) is given twice; it is already on line \(line)")
            } else {
                lines[name] = key.position.line
                own.append(YAMLNode.Entry(key: name, keyPosition: key.position, value: value))
            }
        }
    }

    /// Where a list or mapping ends: libyaml ends one without brackets only where the next thing begins.
    private static func end(
        of event: YAMLEvent, after last: YAMLNode?, _ start: SourcePosition
    ) -> SourcePosition {
        if event.end != event.start { return event.end }
        return last.map { $0.position < start ? start : $0.end } ?? start
    }

    /// The entries of the value of `<<`.
    private static func merged(_ value: YAMLNode) throws(ConfigIssue) -> [YAMLNode.Entry] {
        let sources = if case .sequence(let items) = value.content { items } else { [value] }
        var entries: [YAMLNode.Entry] = []
        for source in sources {
            guard case .mapping(let found) = source.content else {
                throw ConfigIssue(
                    source.position, "'<<' needs a mapping or a list of mappings, not \(source.kindName)")
            }
            entries += found
        }
        return entries
    }

    static func check(depth: Int, at position: SourcePosition) throws(ConfigIssue) {
        if depth > maximumDepth {
            throw ConfigIssue(position, "values are nested deeper than \(maximumDepth) levels")
        }
    }

    private mutating func alias(_ name: String, at position: SourcePosition) throws(ConfigIssue) -> YAMLNode {
        if openAnchors.contains(name) { throw ConfigIssue(position, "this alias is inside its own anchor") }
        guard let node = anchors[name] else {
            // Never quotes the name: it may be a password that begins with an asterisk.
            throw ConfigIssue(position, "no anchor above has this name; put text that begins with '*' in quotes")
        }
        try count(node.size, at: position)
        return node
    }

    /// Checks the limit before using memory: an alias counts as all values of its anchor.
    private mutating func count(_ more: Int, at position: SourcePosition) throws(ConfigIssue) {
        nodes += more
        if nodes > Self.maximumNodes {
            throw ConfigIssue(
                position, "the file is too large: more than \(Self.maximumNodes) values, aliases included")
        }
    }
}

/// A value of a YAML document, with its position.
///
/// A value behind an alias has the position of its anchor, where the text to correct is.
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
    /// The position after its last character.
    var end: SourcePosition
    /// The last line of the value.
    var lastLine: Int
    /// The number of values within this one, including itself and keys.
    var size: Int
    /// Whether it is a list or a mapping in brackets.
    var isFlow = false

    /// Unquoted words for null.
    static let nullWords = ["", "~", "null", "Null", "NULL"]

    /// `key:` without a value, `~` or `null`.
    var isNull: Bool {
        if case .scalar(let text, .plain) = content { Self.nullWords.contains(text) } else { false }
    }

    var items: [YAMLNode] {
        if case .sequence(let items) = content { items } else { [] }
    }

    /// The value of `key` in a mapping.
    subscript(key: String) -> YAMLNode? {
        guard case .mapping(let entries) = content else { return nil }
        return entries.first { $0.key == key }?.value
    }

    /// The kind of value, for people.
    var kindName: String {
        switch content {
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }
}
