package import InletCore

/// Writes the effective configuration as YAML: defaults filled in, secrets as `***`, `${…}` as written.
///
/// Its output is a valid configuration, apart from the secrets.
package struct ConfigPrinter {
    private let types: [DestinationType]
    private var output = ""

    /// The YAML of `config`, which must have been loaded with `types`.
    package static func show(_ config: LoadedConfig, types: [DestinationType]) -> String {
        var printer = ConfigPrinter(types: types)
        printer.write(config.effective, ConfigKeys.specs, depth: 0)
        return printer.output
    }

    /// - Parameter isEntry: true for an entry of a list, whose first key follows a dash.
    private mutating func write(_ section: ConfigSection, _ keys: [KeySpec], depth: Int, isEntry: Bool = false) {
        var hasDash = isEntry
        for spec in keys {
            guard let value = section.values[spec.name], Self.isWorthShowing(value) else { continue }
            output += String(repeating: "  ", count: hasDash ? depth - 1 : depth) + (hasDash ? "- " : "")
            hasDash = false
            write(spec.name, value, spec.kind, depth)
        }
    }

    private mutating func write(_ name: String, _ value: ConfigValue, _ kind: ValueKind, _ depth: Int) {
        output += name + ":"
        switch (value, kind) {
        case (.section(let section), .destinations):
            output += "\n"
            for name in section.positions.sorted(by: { $0.value < $1.value }).map(\.key) {
                guard let entry = section.section(name) else { continue }
                output += String(repeating: "  ", count: depth + 1)
                write(YAMLText.text(name), .section(entry), .section(types.keys(of: entry.string("type"))), depth + 1)
            }
        case (.section(let section), .section(let keys)), (.section(let section), .brief(_, let keys)):
            output += "\n"
            write(section, keys, depth: depth + 1)
        case (.list(let items), .list(.section(let keys))):
            output += "\n"
            for case .section(let section) in items {
                write(section, keys, depth: depth + 2, isEntry: true)
            }
        case (.list(let items), _):
            output += " [" + items.map(YAMLText.scalar).joined(separator: ", ") + "]\n"
        case (.map(let values), _):
            let pairs = values.sorted { $0.key < $1.key }
                .map { "\(YAMLText.text($0.key)): \(YAMLText.quoted($0.value))" }
            output += " {" + pairs.joined(separator: ", ") + "}\n"
        default:
            output += " \(YAMLText.scalar(value))\n"
        }
    }

    /// Hides empty sections, lists and mappings.
    private static func isWorthShowing(_ value: ConfigValue) -> Bool {
        switch value {
        case .section(let section): section.values.values.contains(where: isWorthShowing)
        case .list(let items): !items.isEmpty
        case .map(let values): !values.isEmpty
        default: true
        }
    }
}

/// Single values as YAML text.
package enum YAMLText {
    static func scalar(_ value: ConfigValue) -> String {
        switch value {
        case .string(let value): text(value)
        case .secret: quoted("***")
        case .boolean(let flag): flag ? "true" : "false"
        case .integer(let number): String(number)
        case .bytes(let count): bytes(count)
        case .duration(let duration): duration.map(DurationText.format) ?? "off"
        case .rate(let rate): rate.map { $0 == 0 ? "0" : bytes($0) + "/s" } ?? "off"
        case .list, .section, .map: "~"
        }
    }

    /// Plain words, in lower case, that YAML parsers read as another type.
    static let taken: Set = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]

    /// Plain if every YAML parser reads it as the same text, quoted otherwise.
    static func text(_ value: String) -> String {
        let isWord = value.utf8.allSatisfy { $0 == 0x2D || $0 == 0x5F || (0x61...0x7A).contains($0) }
        return isWord && !taken.contains(value) && value.first?.isLetter == true ? value : quoted(value)
    }

    /// A double-quoted scalar with everything but printable characters escaped.
    package static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            default:
                let isPlain = DisplayText.escape(String(scalar)).unicodeScalars.count == 1 && scalar.value != 0xFEFF
                result += isPlain ? String(scalar) : "\\U" + hex(scalar.value)
            }
        }
        return result + "\""
    }

    /// A double-quoted scalar that interpolation turns back into `text`.
    package static func literal(_ text: String) -> String { quoted(text.replacing("${", with: "$${")) }

    /// The count in the largest binary unit that divides it.
    static func bytes(_ count: Int64) -> String {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            let size = Int64(1) << Int64(shift)
            if count != 0, count % size == 0 { return "\(count / size)\(unit)" }
        }
        return String(count)
    }

    private static func hex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
