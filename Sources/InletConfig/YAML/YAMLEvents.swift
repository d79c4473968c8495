import CYAML
import InletCore

/// A libyaml event; positions count lines and characters from 1.
struct YAMLEvent {
    enum Kind {
        case streamStart
        case streamEnd
        case documentStart
        case documentEnd
        case alias(String)
        case scalar(String, YAMLNode.Style)
        case sequenceStart
        case sequenceEnd
        case mappingStart
        case mappingEnd
    }

    var kind: Kind
    var anchor: String?
    /// An explicit `!tag`.
    var tag: String?
    var start: SourcePosition
    var end: SourcePosition

    static let tagRefusal = "tags such as !!str are not supported; quote text instead"

    /// Errors for features that dropped data may not use: tags, anchors and aliases.
    ///
    /// - Parameter place: "here", "in a sidecar".
    func refusals(_ place: String) -> [ConfigIssue] {
        var found: [ConfigIssue] = []
        if tag != nil { found.append(ConfigIssue(start, Self.tagRefusal)) }
        if anchor != nil {
            found.append(
                ConfigIssue(start, "anchors are not supported \(place); put text that begins with '&' in quotes"))
        }
        if case .alias = kind {
            found.append(
                ConfigIssue(start, "aliases are not supported \(place); put text that begins with '*' in quotes"))
        }
        return found
    }
}

/// The only owner of a libyaml parser and the bytes it reads.
final class YAMLEvents {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let input: UnsafeMutableBufferPointer<UInt8>

    /// - Parameter bytes: the text, without a byte order mark.
    init(_ bytes: [UInt8]) throws(ConfigIssue) {
        if let offset = SourceText.firstInvalidOffset(in: bytes) {
            let place = SourceText.position(after: bytes.prefix(offset))
            throw ConfigIssue(place, "the text is not valid UTF-8 here; save the file as UTF-8")
        }
        // A local variable: once all members are set, a throw runs deinit, which would free the parser twice.
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            throw ConfigIssue(.start, "not enough memory to read the file")
        }
        self.parser = parser
        input = .allocate(capacity: bytes.count)
        _ = input.initialize(from: bytes)
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, input.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
        input.deallocate()
    }

    /// The document's first event; nil if the text has none.
    func begin() throws(ConfigIssue) -> YAMLEvent? {
        _ = try next()
        guard case .documentStart = try next().kind else { return nil }
        return try next()
    }

    /// Checks that nothing follows the document, which must have been read completely.
    ///
    /// - Parameter rule: the end of the error for further documents.
    func end(_ rule: String) throws(ConfigIssue) {
        _ = try next()
        let last = try next()
        guard case .streamEnd = last.kind else {
            throw ConfigIssue(last.start, "a second document starts here; \(rule)")
        }
    }

    /// The next event; do not call it after `.streamEnd` or an error.
    func next() throws(ConfigIssue) -> YAMLEvent {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw complaint() }
        defer { yaml_event_delete(&event) }
        let start = SourcePosition(event.start_mark)
        let end = SourcePosition(event.end_mark)
        let properties = Self.properties(of: event)
        guard let kind = Self.kind(of: event) else { throw ConfigIssue(start, "this is not valid YAML") }
        return YAMLEvent(kind: kind, anchor: properties.anchor, tag: properties.tag, start: start, end: end)
    }

    private static func kind(of event: yaml_event_t) -> YAMLEvent.Kind? {
        switch event.type {
        case YAML_STREAM_START_EVENT: .streamStart
        case YAML_STREAM_END_EVENT: .streamEnd
        case YAML_DOCUMENT_START_EVENT: .documentStart
        case YAML_DOCUMENT_END_EVENT: .documentEnd
        case YAML_ALIAS_EVENT: .alias(text(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT: scalar(event)
        case YAML_SEQUENCE_START_EVENT: .sequenceStart
        case YAML_SEQUENCE_END_EVENT: .sequenceEnd
        case YAML_MAPPING_START_EVENT: .mappingStart
        case YAML_MAPPING_END_EVENT: .mappingEnd
        default: nil
        }
    }

    private static func scalar(_ event: yaml_event_t) -> YAMLEvent.Kind {
        let bytes = UnsafeBufferPointer(start: event.data.scalar.value, count: event.data.scalar.length)
        let style: YAMLNode.Style =
            switch event.data.scalar.style {
            case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
            case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
            case YAML_LITERAL_SCALAR_STYLE, YAML_FOLDED_SCALAR_STYLE: .block
            default: .plain
            }
        return .scalar(String(decoding: bytes, as: UTF8.self), style)
    }

    private static func properties(of event: yaml_event_t) -> (anchor: String?, tag: String?) {
        switch event.type {
        case YAML_SCALAR_EVENT: (text(event.data.scalar.anchor), text(event.data.scalar.tag))
        case YAML_SEQUENCE_START_EVENT: (text(event.data.sequence_start.anchor), text(event.data.sequence_start.tag))
        case YAML_MAPPING_START_EVENT: (text(event.data.mapping_start.anchor), text(event.data.mapping_start.tag))
        default: (nil, nil)
        }
    }

    private static func text(_ pointer: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        pointer.map { String(cString: $0) }
    }

    /// libyaml's error, in our words if they help more.
    private func complaint() -> ConfigIssue {
        let problem = parser.pointee.problem.map { String(cString: $0) } ?? "this is not valid YAML"
        let context = parser.pointee.context.map { String(cString: $0) }
        if parser.pointee.error == YAML_READER_ERROR {
            let before = input.prefix(parser.pointee.problem_offset)
            return ConfigIssue(SourceText.position(after: before), "\(problem); remove this character")
        }
        let place = SourcePosition(parser.pointee.problem_mark)
        if problem.contains("tab character") || character(at: parser.pointee.problem_mark) == UInt8(ascii: "\t") {
            return ConfigIssue(place, "a tab cannot indent here; use spaces")
        }
        if context == "while scanning a quoted scalar", problem.hasSuffix("end of stream") {
            return ConfigIssue(SourcePosition(parser.pointee.context_mark), "the quote that opens here is never closed")
        }
        let where_ = context.map { " \($0)" } ?? ""
        return ConfigIssue(place, "this is not valid YAML: \(problem)\(where_)")
    }

    /// The byte at a libyaml mark, whose index counts characters.
    private func character(at mark: yaml_mark_t) -> UInt8? {
        SourceText.offset(of: mark.index, in: input).map { input[$0] }
    }
}

extension SourcePosition {
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: Int(mark.line) + 1, column: Int(mark.column) + 1) }
}
