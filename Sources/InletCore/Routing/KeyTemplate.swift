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
    package var facts: Set<Fact> {
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
