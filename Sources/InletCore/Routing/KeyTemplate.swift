import Foundation

/// A template for a key or a destination's field: text with `{fields}`; `{{` and `}}` are braces.
///
/// Fields: `name stem ext dir folder[n] owner category volume camera card.roll card.camera card.operator sha256 sha256:n
/// epoch_ms seq mtime:FORMAT@ZONE now:FORMAT@ZONE captured:FORMAT@ZONE`. Equal fields always give equal keys: a key is rendered once, at admission, and kept.
package struct KeyTemplate: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case literal(String)
        /// A `/` in the template; fields may add more.
        case separator
        case field(KeyField)
    }

    /// `{category}/{owner}/{epoch_ms}_{name}`
    package static let standard = KeyTemplate(
        text: "{category}/{owner}/{epoch_ms}_{name}",
        parts: [
            .field(.category), .separator, .field(.owner), .separator, .field(.epochMilliseconds), .literal("_"),
            .field(.name),
        ])

    package let text: String
    private let parts: [Part]
    /// The parts of each folder, and of the name.
    private let folders: [[Part]]

    private init(text: String, parts: [Part]) {
        (self.text, self.parts) = (text, parts)
        folders = parts.split(separator: .separator).map { Array($0) }
    }

    /// The facts that `key(_:)` needs.
    package var facts: Set<FileProperty> {
        Set(parts.flatMap { part -> [FileProperty] in if case .field(let field) = part { field.facts } else { [] } })
    }

    /// The object's key: without a leading `/` and names `.` or `..`. A clean one has 1 to 1,024 bytes of NFC text
    /// without control characters, white space and `\`. Drops a folder of the template whose fields are all empty.
    package func key(_ fields: KeyFields, _ form: NameForm = .clean) -> String {
        var path = ""
        for parts in self.folders {
            guard let folder = folder(of: parts, fields, form) else { continue }
            path += path.isEmpty ? folder : "/" + folder
        }
        let key = KeptName.key(path, form)
        if !key.isEmpty { return key }
        let name = KeptName.key(KeyField.name.value(fields, form), form)
        return name.isEmpty ? "file" : name
    }

    /// The text for a destination's field; replaces only control characters.
    package func text(_ fields: KeyFields) -> String {
        let whole = parts.map { part in
            switch part {
            case .literal(let text): text
            case .separator: "/"
            case .field(let field): field.value(fields, .clean)
            }
        }
        return KeySanitizer.withoutControls(whole.joined())
    }

    /// `key` with `_number` before its last extension, within 1,024 bytes: `a/b.tar.gz` becomes `a/b.tar_2.gz`. A valid
    /// file name stays one.
    package static func disambiguated(_ key: String, number: Int) -> String { ending(key, in: "_\(number)") }

    /// `key` with an agent's tag before its last extension: `a/b.mov` becomes `a/b_k3f7q2.mov`. No other agent of the
    /// fleet can get such a key, so it needs no question. A number that follows leaves the tag whole.
    package static func tagged(_ key: String, tag: String) -> String { ending(key, in: "_\(tag)", room: longestNumber) }

    /// `_` and the digits of the highest number of a key.
    private static let longestNumber = 11

    /// - Parameter room: bytes to leave free for a later addition.
    private static func ending(_ key: String, in addition: String, room: Int = 0) -> String {
        let (head, ending) = KeySanitizer.splitExtension(key)
        let tail = addition + ending
        return KeySanitizer.cut(head, to: KeySanitizer.limit(for: key) - tail.utf8.count - room) + tail
    }

    private func folder(of parts: [Part], _ fields: KeyFields, _ form: NameForm) -> String? {
        var result = ""
        var hasField = false
        var hasValue = false
        for part in parts {
            switch part {
            case .separator: continue
            case .literal(let text): result += text
            case .field(let field):
                let value = field.value(fields, form)
                hasField = true
                hasValue = hasValue || !value.isEmpty
                // "{stem}.{ext}" of a file without an extension.
                if field == .extension, value.isEmpty, result.last == "." { result.removeLast() }
                result += value
            }
        }
        return hasField && !hasValue ? nil : result
    }
}

extension KeyTemplate {
    /// Parses `text`; rejects unknown fields, invalid date formats and unknown zones.
    package init(_ text: String) throws(PatternError) {
        self.init(text: text, parts: try Self.parse(Array(text.utf8)))
    }

    /// The parts of a template's text; offsets in errors refer to the whole text.
    private static func parse(_ bytes: [UInt8]) throws(PatternError) -> [Part] {
        var (parts, literal, index): ([Part], [UInt8], Int) = ([], [], 0)
        func finishLiteral() {
            if !literal.isEmpty { parts.append(.literal(String(decoding: literal, as: UTF8.self))) }
            literal = []
        }
        while index < bytes.count {
            let rest = bytes[index...]
            switch bytes[index] {
            case _ where rest.starts(with: "{{".utf8) || rest.starts(with: "}}".utf8):
                literal.append(bytes[index])
                index += 2
            case UInt8(ascii: "{"):
                finishLiteral()
                let end = try appendField(rest, to: &parts)
                index = end + 1
            case UInt8(ascii: "}"):
                throw PatternError(
                    offset: index, message: "'}' without a '{' before it; for a brace itself write '}}'")
            case UInt8(ascii: "/"):
                finishLiteral()
                parts.append(.separator)
                index += 1
            default:
                literal.append(bytes[index])
                index += 1
            }
        }
        finishLiteral()
        if parts.isEmpty { throw PatternError(offset: 0, message: "the template is empty; write for example '{name}'") }
        return parts
    }

    /// Reads the field at the beginning of `rest`. - Returns: the position of its closing brace.
    private static func appendField(
        _ rest: ArraySlice<UInt8>, to parts: inout [Part]
    ) throws(PatternError) -> Int {
        let start = rest.startIndex
        guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
            throw PatternError(offset: start, message: "'{' is not closed by '}'; for a brace itself write '{{'")
        }
        do throws(PatternError) {
            parts.append(.field(try KeyField(String(decoding: rest[(start + 1)..<end], as: UTF8.self))))
        } catch {
            throw PatternError(offset: start + 1 + error.offset, message: error.message)
        }
        return end
    }
}

// The only file of this module that needs Foundation: zones and normal forms come from ICU, with the Unicode and IANA
// tables of the toolchain.

extension KeyTemplate {
    /// Unicode normal form C.
    static func composed(_ text: String) -> String {
        text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }

    /// The IANA name of the default zone for templates.
    package static var systemZone: String { TimeZone.autoupdatingCurrent.identifier }
}

extension FileName {
    /// The name in Unicode's normal forms C and D if the bytes differ: names that look the same.
    package var otherSpellings: [[UInt8]] {
        guard bytes.contains(where: { $0 >= 0x80 }), let text = String(validating: bytes, as: UTF8.self) else {
            return []
        }
        let forms = [text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
        return forms.map { Array($0.utf8) }.filter { $0 != bytes }
    }
}

extension LocalTime {
    static func exists(_ name: String) -> Bool { TimeZone(identifier: name) != nil }

    /// `time` in the local time of `zone`; nil or an unknown name means the system's.
    static func local(_ time: WallTime, zone: String?) -> LocalTime {
        let zone = zone.flatMap { TimeZone(identifier: $0) } ?? .autoupdatingCurrent
        let date = Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        return LocalTime(time, offset: Int64(zone.secondsFromGMT(for: date)))
    }
}
