import InletCore

/// Writes new values as YAML, in the order of their keys' table.
enum YAMLWriter {
    typealias Member = (key: String, value: JSONValue, kind: ValueKind)

    /// Refuses keys that do not exist, and programs that Inlet would run: whoever may change those may run anything.
    static func check(_ values: JSONObject, _ keys: [KeySpec]) throws(ConfigEditFault) {
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            guard let spec = keys.first(where: { $0.name == key }) else {
                throw ConfigEditFault("'\(DisplayText.escape(key))' is not a key of this entry")
            }
            if ConfigKeys.programs.contains(key), value != .null {
                throw ConfigEditFault("'\(key)' starts a program, which only the file itself may set")
            }
            switch (value, spec.kind) {
            case (.object(let inner), .section(let keys)), (.object(let inner), .brief(_, let keys)):
                try check(inner, keys)
            case (.array(let items), .list(.section(let keys))):
                for case .object(let inner) in items { try check(inner, keys) }
            default: break
            }
        }
    }

    /// The members that have a value; those of unknown keys are none of ours.
    static func members(_ values: JSONObject, _ keys: [KeySpec]) -> [Member] {
        keys.compactMap { spec in values[spec.name].map { (spec.name, $0, spec.kind) } }
    }

    /// The lines of a new entry, not indented.
    static func entry(_ values: JSONObject, _ keys: [KeySpec]) -> [String] {
        members(values, keys).flatMap { lines($0) }
    }

    /// A key with its value, over as many lines as it needs.
    static func lines(_ member: Member) -> [String] {
        guard YAMLTree(member.value) != nil else { return [] }
        let key = name(member.key) + ":"
        switch (member.value, member.kind) {
        case (.object(let inner), .section(let keys)), (.object(let inner), .brief(_, let keys)):
            return [key] + entry(inner, keys).map { "  " + $0 }
        case (.object(let inner), _):
            return [key]
                + inner.sorted { $0.key < $1.key }.map { "  \(name($0.key)): \(inline($0.value, .string))" }
        case (.array(let items), .list(.section(let keys))):
            return [key]
                + items.flatMap { item in item.object.map { dashed(entry($0, keys)).map { "  " + $0 } } ?? [] }
        default:
            return ["\(key) \(inline(member.value, member.kind))"]
        }
    }

    /// The lines of an entry of a list.
    static func dashed(_ lines: [String]) -> [String] {
        lines.enumerated().map { ($0 == 0 ? "- " : "  ") + $1 }
    }

    /// A value on one line; lists and mappings in brackets.
    static func inline(_ value: JSONValue, _ kind: ValueKind) -> String {
        switch (value, kind) {
        case (.null, _): return "~"
        case (.boolean(let flag), _): return flag ? "true" : "false"
        case (.number(let digits), _): return digits
        case (.string(let text), _): return scalar(text, kind)
        case (.array(let items), .list(let item)):
            return "[" + items.map { inline($0, item) }.joined(separator: ", ") + "]"
        case (.array(let items), _): return "[" + items.map { inline($0, kind) }.joined(separator: ", ") + "]"
        case (.object(let inner), .section(let keys)), (.object(let inner), .brief(_, let keys)):
            return braced(members(inner, keys).filter { YAMLTree($0.value) != nil })
        case (.object(let inner), _):
            return braced(inner.sorted { $0.key < $1.key }.map { ($0.key, $0.value, .string) })
        }
    }

    private static func braced(_ members: [Member]) -> String {
        "{ " + members.map { "\(name($0.key)): \(inline($0.value, $0.kind))" }.joined(separator: ", ") + " }"
    }

    /// A key.
    static func name(_ text: String) -> String { scalar(text, .string) }

    /// Plain where every parser reads it as this text.
    private static func scalar(_ text: String, _ kind: ValueKind) -> String {
        let isPlain =
            switch kind {
            case .boolean, .integer, .bytes, .duration, .rate, .choice:
                text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9_.\/+-]*/) != nil
            default:
                text.wholeMatch(of: /[A-Za-z_\/][A-Za-z0-9_.\/-]*/) != nil
                    && !YAMLText.taken.contains(text.lowercased())
            }
        return isPlain ? text : YAMLText.quoted(text)
    }
}

extension ConfigKeys {
    /// Keys, wherever they are, whose value is a command line.
    static let programs: Set = ["command", "on_card"]
}
