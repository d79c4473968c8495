import Foundation

/// A template for an object's key or for a destination's own field: text with `{fields}`; `{{` and `}}` are braces.
///
/// Fields: `name stem ext dir folder[n] owner category sha256 sha256:n epoch_ms seq mtime:FORMAT@ZONE now:FORMAT@ZONE
/// captured:FORMAT@ZONE`.
/// The same fields give the same key, always: keys are rendered once, at admission, and kept.
package struct KeyTemplate: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case literal(String)
        /// A `/` written in the template; fields may bring more.
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

    /// What has to be found out before `key(_:)`.
    package var facts: Set<FileProperty> {
        Set(parts.compactMap { if case .field(let field) = $0 { field.fact } else { nil } })
    }

    /// The object's key: 1 to 1,024 bytes of NFC text, without a leading `/`, `.` or `..` as a name, control
    /// characters, white space or `\`. A folder of the template whose fields are all empty is left out.
    package func key(_ fields: KeyFields) -> String {
        let folders = parts.split(separator: .separator).compactMap { folder(of: $0, fields) }
        let key = KeySanitizer.key(folders.joined(separator: "/"))
        if !key.isEmpty { return key }
        let name = KeySanitizer.key(KeyField.name.value(fields))
        return name.isEmpty ? "file" : name
    }

    /// The text for a field of a destination: nothing is cleaned but control characters.
    package func text(_ fields: KeyFields) -> String {
        let whole = parts.map { part in
            switch part {
            case .literal(let text): text
            case .separator: "/"
            case .field(let field): field.value(fields)
            }
        }
        return KeySanitizer.withoutControls(whole.joined())
    }

    /// `key` with `_number` before its last extension, within 1,024 bytes: `a/b.tar.gz` becomes `a/b.tar_2.gz`. A last name
    /// that a file can have stays one that a file can have.
    package static func disambiguated(_ key: String, number: Int) -> String {
        let (head, ending) = KeySanitizer.splitExtension(key)
        let tail = "_\(number)\(ending)"
        return KeySanitizer.cut(head, to: KeySanitizer.limit(for: key) - tail.utf8.count) + tail
    }

    private func folder(of parts: ArraySlice<Part>, _ fields: KeyFields) -> String? {
        var result = ""
        var hasField = false
        var hasValue = false
        for part in parts {
            switch part {
            case .separator: continue
            case .literal(let text): result += text
            case .field(let field):
                let value = field.value(fields)
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
    /// Parses `text`; unknown fields, dates that cannot be formatted and unknown zones are refused.
    package init(_ text: String) throws(PatternError) {
        self.init(text: text, parts: try Self.parse(Array(text.utf8)))
    }

    /// The parts of a template's text; offsets in errors are those of the whole text.
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

    /// Reads the field that `rest` begins with. - Returns: the place of its closing brace.
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

// The one file of this module that needs Foundation: its zone rules and its normal form are ICU's, and both move with
// the Unicode and IANA tables that ship with the toolchain.

extension KeyTemplate {
    /// Unicode normal form C.
    static func composed(_ text: String) -> String {
        text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }

    /// The IANA name of the zone that templates use when they name none.
    package static var systemZone: String { TimeZone.autoupdatingCurrent.identifier }
}

extension FileName {
    /// The name in Unicode's normal forms C and D, where that is another sequence of bytes: names that look the same.
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

    /// `time` on the wall clock of `zone`; nil or an unknown name is the system's.
    static func local(_ time: WallTime, zone: String?) -> LocalTime {
        let zone = zone.flatMap { TimeZone(identifier: $0) } ?? .autoupdatingCurrent
        let date = Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        return LocalTime(time, offset: Int64(zone.secondsFromGMT(for: date)))
    }
}
