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

    private init(text: String, parts: [Part]) {
        self.text = text
        self.parts = parts
    }

    /// Parses `text`; unknown fields, dates that cannot be formatted and unknown zones are refused.
    package init(_ text: String) throws(PatternError) {
        var parser = KeyTemplateParser(text)
        self.init(text: text, parts: try parser.parse())
    }

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

/// Splits a template's text into parts; offsets in its errors are UTF-8 offsets into the whole text.
struct KeyTemplateParser {
    private let bytes: [UInt8]
    private var index = 0
    private var literal: [UInt8] = []
    private var parts: [KeyTemplate.Part] = []

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func parse() throws(PatternError) -> [KeyTemplate.Part] {
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "{"): try parseOpeningBrace()
            case UInt8(ascii: "}"): try parseClosingBrace()
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
        if parts.isEmpty { throw PatternError(offset: 0, message: "the template is empty; the usual one is '{name}'") }
        return parts
    }

    private mutating func finishLiteral() {
        if !literal.isEmpty { parts.append(.literal(String(decoding: literal, as: UTF8.self))) }
        literal = []
    }

    private mutating func parseOpeningBrace() throws(PatternError) {
        if bytes[index...].starts(with: "{{".utf8) {
            literal.append(bytes[index])
            index += 2
            return
        }
        guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else {
            throw PatternError(offset: index, message: "'{' is not closed by '}'; for a brace itself write '{{'")
        }
        let inside = String(decoding: bytes[(index + 1)..<end], as: UTF8.self)
        do throws(PatternError) {
            finishLiteral()
            parts.append(.field(try KeyField(inside)))
        } catch {
            throw PatternError(offset: index + 1 + error.offset, message: error.message)
        }
        index = end + 1
    }

    private mutating func parseClosingBrace() throws(PatternError) {
        guard bytes[index...].starts(with: "}}".utf8) else {
            throw PatternError(offset: index, message: "'}' without a '{' before it; for a brace itself write '}}'")
        }
        literal.append(bytes[index])
        index += 2
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

/// Civil time in a zone.
enum LocalClock {
    static func exists(_ name: String) -> Bool { TimeZone(identifier: name) != nil }

    /// `time` on the wall clock of `zone`; nil or an unknown name is the system's.
    static func local(_ time: WallTime, zone: String?) -> LocalTime {
        let zone = zone.flatMap { TimeZone(identifier: $0) } ?? .autoupdatingCurrent
        let date = Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        return LocalTime(time, offset: Int64(zone.secondsFromGMT(for: date)))
    }
}
