package import InletCore
package import SystemPackage

/// What `<file>.yaml` beside a file says of it: fields of the destination, as the route's `with:` has them.
///
/// One flat mapping of names to texts, numbers or lists of them; one called `labels` may be such a mapping itself, and then holds
/// the file's labels. A sidecar is written by whoever may drop files, not by
/// whoever may configure the agent. So nothing is filled in: `${env:NAME}` and `${file:PATH}` stay as they are written,
/// and anchors, aliases, merge keys and tags are refused.
package struct SidecarMetadata {
    private var fields: [String: String] = [:]
    private var labels: [String: String] = [:]
    private var problems: [ConfigIssue] = []
    private var lines: [String: Int] = [:]

    /// Larger ones are refused.
    package static let maximumBytes = 64 << 10
    /// Longer names are refused; destinations have none.
    static let longestName = 64

    /// The fields in `bytes`; none for an empty text. Values are as written, without their quotes: a date stays
    /// `2026-11-21`, and `yes` is no truth value. A list becomes its items with `, ` between them. A field without a value
    /// (`notes:`, `~`, `null`) is as if it were not there; `""` is an empty text.
    ///
    /// - Parameter file: the name for errors.
    /// - Throws: everything that is wrong, with its places, in the file's order; broken YAML ends the list.
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

    /// The labels of a unit, of which a `.inlet.yaml` or the content of a marker says `labels: {project: Roxy}`.
    ///
    /// - Parameter isMarker: it may hold anything else too, which then says nothing about labels.
    /// - Throws: as `parse`; of a marker only if it has a line that begins with `labels:`.
    package static func unitLabels(
        _ bytes: [UInt8], file: FilePath, isMarker: Bool
    ) throws(ConfigErrors) -> [String: String] {
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        if isMarker, !lines.contains(where: { $0.hasPrefix("labels:") }) { return [:] }
        return try parse(bytes, file: file).labels
    }

    // MARK: - Reading; what is wrong with one field is noted, and the rest is read on

    /// - Throws: what ends the reading: text that is not UTF-8, broken YAML, or something else than one mapping.
    private mutating func read(_ bytes: [UInt8]) throws(ConfigIssue) {
        let events = try YAMLEvents(bytes)
        guard let root = try events.begin() else { return }
        if !Self.isNothing(root) {
            guard case .mappingStart = root.kind else {
                throw ConfigIssue(root.start, "a sidecar is a mapping of fields, as in 'label: Live at the Roxy'")
            }
            check(root)
            fields = try readFields(events, isRoot: true)
        }
        try events.end("a sidecar is one document")
    }

    /// The mapping that has begun, to its end.
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

    /// The one field that may be a mapping.
    private static let labels = "labels"

    /// The field's name; nil when it cannot be one, which is noted.
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
                    "\(SecretMask.quoted(name)) is no field's name: letters, digits, '_' and '-', at most \(limit)"))
        } else if let line = lines[name] {
            problems.append(
                ConfigIssue(key.start, "field \(SecretMask.quoted(name)) is given twice; it is already on line \(line)")
            )
        } else {
            lines[name] = key.start.line
            return name
        }
        // A name that is no mapping or list has ended already.
        return nil
    }

    /// The value that `event` begins, read to its end; nil for none, and for what is not supported, which is noted.
    private mutating func value(_ event: YAMLEvent, _ events: YAMLEvents) throws(ConfigIssue) -> String? {
        check(event)
        switch event.kind {
        case .scalar(let text, _): return Self.isNothing(event) ? nil : text
        case .sequenceStart: return try list(events)
        case .mappingStart:
            problems.append(ConfigIssue(event.start, "fields of a sidecar hold texts or lists of texts, not mappings"))
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
                problems.append(ConfigIssue(item.start, "a list of a sidecar holds texts, not lists or mappings"))
                try skip(from: item, events)
            }
        }
    }

    /// Notes what a sidecar may not have at any place.
    private mutating func check(_ event: YAMLEvent) { problems += event.refusals("in a sidecar") }

    /// Reads to the end of the list or mapping that `event` begins; at once for anything else.
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
