internal import InletCore
package import SystemPackage

/// Converts a YAML document into equivalent JSON, event by event: for data of any size that people drop beside the
/// agent, never for its configuration.
///
/// As in a sidecar, nothing is filled in, and anchors, aliases, merge keys and tags are errors. Unquoted words follow
/// the core schema of YAML 1.2 (section 10.3); numbers that JSON does not have (`.inf`, `.nan`) stay texts.
package struct YAMLAsJSON {
    private var json: [UInt8] = []

    /// - Parameter file: the name for errors.
    /// - Throws: the first error, with its position; later ones are unknown.
    package static func convert(_ bytes: [UInt8], file: FilePath) throws(ConfigError) -> [UInt8] {
        var writer = YAMLAsJSON()
        do throws(ConfigIssue) {
            return try writer.convert(SourceText.withoutMark(bytes))
        } catch {
            let place = error.position
            throw ConfigError(
                file: file.display, line: place.line, column: place.column, message: error.message, excerpt: "")
        }
    }

    private mutating func convert(_ bytes: [UInt8]) throws(ConfigIssue) -> [UInt8] {
        let events = try YAMLEvents(bytes)
        guard let first = try events.begin() else { return Array("null".utf8) }
        try value(first, events, depth: 1)
        try events.end("the file may have only one")
        return json
    }

    private mutating func value(_ event: YAMLEvent, _ events: YAMLEvents, depth: Int) throws(ConfigIssue) {
        try YAMLDocument.check(depth: depth, at: event.start)
        if let refusal = event.refusals("here").first { throw refusal }
        switch event.kind {
        case .scalar(let text, .plain): json += Self.plain(text).utf8
        case .scalar(let text, _): json += JSONString.quote(text).utf8
        case .sequenceStart: try list(events, depth)
        case .mappingStart: try mapping(events, depth)
        default: throw ConfigIssue(event.start, "this is not valid YAML")
        }
    }

    private mutating func list(_ events: YAMLEvents, _ depth: Int) throws(ConfigIssue) {
        json.append(UInt8(ascii: "["))
        var isFirst = true
        while true {
            let event = try events.next()
            if case .sequenceEnd = event.kind { break }
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            try value(event, events, depth: depth + 1)
        }
        json.append(UInt8(ascii: "]"))
    }

    private mutating func mapping(_ events: YAMLEvents, _ depth: Int) throws(ConfigIssue) {
        json.append(UInt8(ascii: "{"))
        var lines: [String: Int] = [:]
        while true {
            let key = try events.next()
            if case .mappingEnd = key.kind { break }
            if let refusal = key.refusals("here").first { throw refusal }
            guard case .scalar(let name, let style) = key.kind else {
                throw ConfigIssue(key.start, "a key must be a plain word")
            }
            if name == "<<", style == .plain {
                throw ConfigIssue(key.start, "merge keys ('<<') are not supported here")
            }
            if let line = lines[name] {
                throw ConfigIssue(
                    key.start, "key \(SecretMask.quoted(name)) is given twice; it is already on line \(line)")
            }
            if !lines.isEmpty { json.append(UInt8(ascii: ",")) }
            lines[name] = key.start.line
            json += JSONString.quote(name).utf8
            json.append(UInt8(ascii: ":"))
            try value(try events.next(), events, depth: depth + 1)
        }
        json.append(UInt8(ascii: "}"))
    }

    // MARK: - Unquoted words

    private static func plain(_ text: String) -> String {
        switch text {
        case _ where YAMLNode.nullWords.contains(text): "null"
        case "true", "True", "TRUE": "true"
        case "false", "False", "FALSE": "false"
        default: number(text) ?? JSONString.quote(text)
        }
    }

    /// The number as JSON writes it; nil for other words.
    private static func number(_ text: String) -> String? {
        for (head, radix) in [("0x", 16), ("0o", 8)] where text.hasPrefix(head) {
            let digits = text.dropFirst(2)
            guard digits.allSatisfy(\.isHexDigit) else { return nil }
            return UInt64(digits, radix: radix).map { String($0) }
        }
        if case .number(text)? = JSON.value(text.utf8) { return text }
        guard text.utf8.allSatisfy({ "+-.0123456789eE".utf8.contains($0) }) else { return nil }
        if let value = Int64(text) { return String(value) }
        guard let value = Double(text), value.isFinite else { return nil }
        return String(value)
    }
}
