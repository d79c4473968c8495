package import InletCore
internal import InletLinux
internal import SystemPackage

/// One field of a log line.
package enum EventValue: Sendable, Hashable {
    case text(String)
    case number(Int64)
    case list([String])
    case flag(Bool)

    /// The field's JSON Schema.
    var schema: String {
        switch self {
        case .text: #"{"type": "string"}"#
        case .number: #"{"type": "integer"}"#
        case .list: #"{"type": "array", "items": {"type": "string"}}"#
        case .flag: #"{"type": "boolean"}"#
        }
    }

    /// The value without quotes.
    package var plain: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ",")
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }

    fileprivate var quoted: String {
        let text = DisplayText.escape(plain)
        // A quote with a combining accent is one character, and still a quote.
        let scalars = text.unicodeScalars
        if !text.isEmpty, !scalars.contains(where: { $0.properties.isWhitespace || $0 == "\"" }) { return text }
        var quoted = "\"".unicodeScalars
        for scalar in scalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        quoted.append("\"")
        return String(quoted)
    }
}

/// A value of a log line's field. Text is escaped: it may contain bytes from a server or a file name.
protocol LoggedValue {
    /// nil leaves the field out.
    var logged: EventValue? { get }
}

extension Int: LoggedValue { var logged: EventValue? { .number(Int64(self)) } }
extension Int64: LoggedValue { var logged: EventValue? { .number(self) } }
extension Bool: LoggedValue { var logged: EventValue? { .flag(self) } }
extension FilePath: LoggedValue { var logged: EventValue? { .text(display) } }
extension WallTime: LoggedValue { var logged: EventValue? { .text(rfc3339) } }
/// In milliseconds.
extension Duration: LoggedValue { var logged: EventValue? { .number(milliseconds) } }
extension String: LoggedValue {
    var logged: EventValue? { .text(utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? self : DisplayText.escape(self)) }
}
/// Items stay unchanged: each may contain line breaks.
extension [String]: LoggedValue { var logged: EventValue? { .list(self) } }
/// A file's labels, as `name=value`; nil for none.
extension [String: String]: LoggedValue {
    var logged: EventValue? {
        isEmpty ? nil : .list(sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") })
    }
}

/// How an output writes lines.
enum LineStyle: Sendable, Equatable {
    /// One JSON object per line.
    case json
    /// `TIME LEVEL EVENT FIELD=VALUE…`, for files and pipes.
    case text
    /// Sentences in columns, for a person at a terminal.
    case terminal(hasColour: Bool)

    init(_ format: LogSettings.Format, on stream: StandardStream?) {
        let isTerminal = stream.map { ProcessSetup.isTerminal($0.rawValue) } ?? false
        switch format {
        case .json: self = .json
        case .auto where !isTerminal: self = .json
        case .text where !isTerminal: self = .text
        case .auto, .text: self = .terminal(hasColour: ProcessSetup.allowsColour)
        }
    }
}

extension LogSettings {
    /// Whether standard error holds the log's JSON lines, and nothing else.
    package var isJSONOnStandardError: Bool { output == "stderr" && LineStyle(format, on: .errors) == .json }
}

extension AgentEvent {
    /// Its JSON line, for a process that cannot open its log.
    package func json(at time: WallTime) -> [UInt8] { line.text(.json, at: time) }
}

/// A log line of an event: its row, and the values of the row's fields.
package struct EventLine: Sendable {
    let spec: EventSpec
    package let level: LogSettings.Level
    let values: [EventValue?]
    /// How many lines with the same cause were left out before this one.
    var repeats = 0

    package var name: String { spec.name }

    /// The fields that the line has, in their order.
    package var fields: [(String, EventValue)] {
        var fields: [(String, EventValue)] = []
        forEachField { fields.append(($0, $1)) }
        return fields
    }

    private func forEachField(_ body: (_ name: String, _ value: EventValue) -> Void) {
        for (field, value) in zip(spec.fields, values) { if let value { body(field.name, value) } }
        if repeats > 0 { body(EventSpec.repeatsField, .number(Int64(repeats))) }
        if let was = spec.formerName { body("was", .text(was)) }
    }

    /// Equal for lines that report the same: the hash of all fields but times and durations. nil for events that are
    /// always written, and for lines below warning.
    var cause: Int? {
        guard spec.mayRepeat, level >= .warning else { return nil }
        var hasher = Hasher()
        hasher.combine(name)
        for (field, value) in zip(spec.fields, values) where !field.isTime { hasher.combine(value) }
        return hasher.finalize()
    }

    /// Whether any number of such lines may come at once, and one tells as much as all: warnings that belong to no job.
    var mayFlood: Bool { level >= .warning && !spec.isOfJob }

    /// Approximate size in memory, in bytes.
    var weight: Int {
        values.reduce(128) { sum, value in
            switch value {
            case .text(let text)?: sum + 64 + text.utf8.count
            case .list(let items)?: items.reduce(sum + 96) { $0 + 32 + $1.utf8.count }
            case .number?, .flag?: sum + 64
            case nil: sum
            }
        }
    }

    /// The written line, with its line break.
    func text(_ style: LineStyle, at time: WallTime) -> [UInt8] {
        switch style {
        case .json: json(time)
        case .text: Array("\(time.rfc3339) \(level) \(words)\n".utf8)
        case .terminal(let hasColour): Array("\(sentence(at: time, hasColour: hasColour))\n".utf8)
        }
    }

    /// `20:00:07 warning  store is down: refused`: the columns of a terminal. Lines of a configuration error stay lines.
    private func sentence(at time: WallTime, hasColour: Bool) -> String {
        func tint(_ text: String, _ style: TextStyle?) -> String { hasColour ? style?.paint(text) ?? text : text }
        let style: TextStyle? =
            switch level {
            case .debug: .faint
            case .info: spec.isGood ? .good : nil
            case .warning: .warning
            case .error: .bad
            }
        let fields = Dictionary(fields) { first, _ in first }
        let job = if case .number(let job)? = fields["job"] { tint("  #\(job)", .faint) } else { "" }
        let sentence = tint(
            spec.sentence { fields[$0] } ?? DisplayText.escape(words), level == .info ? nil : style)
        return tint(time.clock(), .faint) + " " + tint(DisplayWidth.pad("\(level)", Self.levelWidth), style)
            + "  \(sentence)\(job)"
    }

    private static let levelWidth = LogSettings.Level.allCases.map(\.rawValue.count).max() ?? 0

    /// `job.delivered job=7 path=/srv/drop/a.mp4`: the text without time and level. A value that contains a space or a quote is
    /// quoted, with `\"` and `\\` inside, so that no value passes for another field.
    var words: String {
        var words = name
        forEachField { words += " \($0)=\($1.quoted)" }
        return words
    }

    private func json(_ time: WallTime) -> [UInt8] {
        var object = JSONLine()
        object.add("ts", time.rfc3339)
        object.add("level", "\(level)")
        object.add("event", name)
        forEachField { name, value in
            switch value {
            case .text(let text): object.add(name, text)
            case .number(let number): object.add(name, number)
            case .list(let items): object.add(name, items)
            case .flag(let isSet): object.add(name, isSet)
            }
        }
        return object.finished + [UInt8(ascii: "\n")]
    }

    /// The line as an entry of systemd's journal: text as the message, and one journal field per field.
    var journalMessage: JournalMessage {
        var message = JournalMessage()
        message.add("MESSAGE", words)
        message.add("PRIORITY", String(level.priority))
        message.add("SYSLOG_IDENTIFIER", "inlet")
        message.add("INLET_EVENT", name)
        // A journal field may occur twice: filters by the old name still match.
        if let was = spec.formerName { message.add("INLET_EVENT", was) }
        forEachField { message.add(JournalMessage.fieldName("INLET_", $0), $1.plain) }
        return message
    }
}

extension LogSettings.Level {
    /// The priority of syslog(3).
    var priority: Int {
        switch self {
        case .debug: 7
        case .info: 6
        case .warning: 4
        case .error: 3
        }
    }
}
