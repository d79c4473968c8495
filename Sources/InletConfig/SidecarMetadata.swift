package import InletCore
package import SystemPackage

/// The content of `<file>.yaml` beside a file: fields for the destination, as in the route's `with:`.
///
/// A flat mapping of names to texts, numbers or lists of them. `labels` may be such a mapping itself, and contains the
/// file's labels. Anyone who may drop files can write a sidecar, so Inlet trusts it less than the configuration.
/// Text such as `${env:NAME}` and `${file:PATH}` stays as written. Anchors, aliases, merge keys and tags are errors.
package struct SidecarMetadata {
    private var fields: [String: String] = [:]
    private var labels: [String: String] = [:]
    private var problems: [ConfigIssue] = []
    private var lines: [String: Int] = [:]

    /// The largest sidecar, in bytes.
    package static let maximumBytes = 64 << 10
    /// The longest field name; no destination has longer ones.
    static let longestName = 64

    /// The fields in `bytes`; none for an empty text. Values are texts as written, without their quotes: `2026-11-21`
    /// and `yes` stay texts. A list becomes its items, joined with `, `. A field without a value (`notes:`, `~`,
    /// `null`) counts as absent; `""` is an empty text.
    ///
    /// - Parameter file: the name for errors.
    /// - Throws: all errors in the file's order, with their positions; invalid YAML ends the list.
    package static func parse(_ bytes: [UInt8], file: FilePath) throws(ConfigErrors) -> Sidecar {
        let text = SourceText.withoutMark(bytes)
        let isTooLarge = text.count > maximumBytes
        let source = SourceText(isTooLarge ? [] : text)
        let report = ErrorReport(file: file.display, source: source, mask: SecretMask(source: source, names: []))
        var reader = SidecarMetadata()
        do throws(ConfigIssue) {
            if isTooLarge { throw ConfigIssue(.start, "the sidecar is larger than 64 KiB") }
            try reader.read(text)
        } catch {
            reader.problems.append(error)
        }
        if !reader.problems.isEmpty { throw report.errors(reader.problems) }
        return Sidecar(fields: reader.fields, labels: reader.labels)
    }

    /// The labels of a unit from its `.inlet.yaml` or marker, as in `labels: {project: Roxy}`.
    ///
    /// - Parameter isMarker: a marker may contain anything, and then has no labels.
    /// - Throws: like `parse`; for a marker only if a line begins with `labels:`.
    package static func unitLabels(
        _ bytes: [UInt8], file: FilePath, isMarker: Bool
    ) throws(ConfigErrors) -> [String: String] {
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        if isMarker, !lines.contains(where: { $0.hasPrefix("labels:") }) { return [:] }
        return try parse(bytes, file: file).labels
    }

    // MARK: - Reading: notes errors in fields and continues

    /// - Throws: errors that end the reading: text that is not UTF-8, invalid YAML, or anything but one mapping.
    private mutating func read(_ bytes: [UInt8]) throws(ConfigIssue) {
        let events = try YAMLEvents(bytes)
        guard let root = try events.begin() else { return }
        if !Self.isNothing(root) {
            guard case .mappingStart = root.kind else {
                throw ConfigIssue(root.start, "a sidecar must be a mapping of fields, as in 'label: Live at the Roxy'")
            }
            check(root)
            fields = try readFields(events, isRoot: true)
        }
        try events.end("a sidecar has only one")
    }

    /// Reads the mapping that has begun to its end.
    private mutating func readFields(_ events: YAMLEvents, isRoot: Bool) throws(ConfigIssue) -> [String: String] {
        let outer = lines
        lines = [:]
        var found: [String: String] = [:]
        while true {
            let key = try events.next()
            if case .mappingEnd = key.kind { break }
            check(key)
            let name = name(of: key)
            if name == nil { try skip(from: key, events) }
            let event = try events.next()
            if isRoot, name == Self.labels, case .mappingStart = event.kind {
                check(event)
                labels = try readFields(events, isRoot: false)
            } else if let value = try value(event, events), let name {
                found[name] = value
            }
        }
        lines = outer
        return found
    }

    /// The only field that may be a mapping.
    private static let labels = "labels"

    /// The field's name; nil, with an error noted, if it is not valid.
    private mutating func name(of key: YAMLEvent) -> String? {
        guard case .scalar(let name, let style) = key.kind else {
            problems.append(ConfigIssue(key.start, "a field's name must be a plain word"))
            return nil
        }
        if name == "<<", style == .plain {
            problems.append(ConfigIssue(key.start, "merge keys ('<<') are not supported in a sidecar"))
        } else if !Self.isName(name) {
            let limit = Self.longestName
            problems.append(
                ConfigIssue(
                    key.start,
                    "\(SecretMask.quoted(name)) is not a field's name; use up to \(limit) letters, digits, '_' and '-'")
            )
        } else if let line = lines[name] {
            problems.append(
                ConfigIssue(key.start, "field \(SecretMask.quoted(name)) is given twice; it is already on line \(line)")
            )
        } else {
            lines[name] = key.start.line
            return name
        }
        // A scalar needs no skipping: it has ended already.
        return nil
    }

    /// Reads the value that `event` begins to its end; nil if there is none, or if it is unsupported, which is noted.
    private mutating func value(_ event: YAMLEvent, _ events: YAMLEvents) throws(ConfigIssue) -> String? {
        check(event)
        switch event.kind {
        case .scalar(let text, _): return Self.isNothing(event) ? nil : text
        case .sequenceStart: return try list(events)
        case .mappingStart:
            problems.append(
                ConfigIssue(event.start, "a field of a sidecar must be a text or a list of texts, not a mapping"))
            try skip(from: event, events)
            return nil
        default: return nil
        }
    }

    private mutating func list(_ events: YAMLEvents) throws(ConfigIssue) -> String {
        var items: [String] = []
        while true {
            let item = try events.next()
            if case .sequenceEnd = item.kind { return items.joined(separator: ", ") }
            check(item)
            if case .scalar(let text, _) = item.kind {
                if !Self.isNothing(item) { items.append(text) }
            } else if case .alias = item.kind {
                continue
            } else {
                problems.append(ConfigIssue(item.start, "a list in a sidecar must hold texts, not lists or mappings"))
                try skip(from: item, events)
            }
        }
    }

    /// Notes features that a sidecar may not use anywhere.
    private mutating func check(_ event: YAMLEvent) { problems += event.refusals("in a sidecar") }

    /// Skips to the end of the list or mapping that `event` begins; does nothing for other events.
    private func skip(from event: YAMLEvent, _ events: YAMLEvents) throws(ConfigIssue) {
        var event = event
        var depth = 0
        while true {
            switch event.kind {
            case .sequenceStart, .mappingStart: depth += 1
            case .sequenceEnd, .mappingEnd: depth -= 1
            default: break
            }
            if depth == 0 { return }
            try YAMLDocument.check(depth: depth, at: event.start)
            event = try events.next()
        }
    }

    private static func isNothing(_ event: YAMLEvent) -> Bool {
        guard case .scalar(let text, .plain) = event.kind, event.anchor == nil, event.tag == nil else { return false }
        return YAMLNode.nullWords.contains(text)
    }

    private static func isName(_ text: String) -> Bool {
        (1...longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): true
                default: false
                }
            }
    }
}
