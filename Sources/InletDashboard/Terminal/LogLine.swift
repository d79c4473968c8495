package import InletAgent
package import InletCore

/// One line of the agent's log, as far as it is one: a JSON object with a time, a level and an event.
package struct LogFields: Sendable, Equatable {
    package var time: String
    package var level: String
    package var event: String
    /// All the others, by their names.
    package var fields: [String: EventValue]

    /// nil for what is no line of the log.
    package init?(_ line: some Sequence<UInt8>) {
        guard let json = JSON.value(line) else { return nil }
        self.init(json)
    }

    private init?(_ json: JSONValue) {
        guard let all = json.object, let time = all["ts"]?.string, let level = all["level"]?.string,
            let event = all["event"]?.string
        else { return nil }
        (self.time, self.level, self.event) = (time, level, event)
        fields = all.filter { !["ts", "level", "event"].contains($0.key) }.compactMapValues { EventValue($0) }
    }

    /// The lines of a JSON array, such as the agent answers with; nil for what is none.
    static func all(_ body: [UInt8]) -> [LogFields]? {
        JSON.value(body)?.array?.compactMap { LogFields($0) }
    }

    /// The line's number, in answers of a running agent.
    package var sequence: Int64? { number("seq") }
    package var job: Int64? { number("job") }

    private func number(_ name: String) -> Int64? {
        if case .number(let number)? = fields[name] { number } else { nil }
    }

    // MARK: - In words

    /// The sentence of its event, or the name of an event that is not known with all its fields.
    func sentence(_ spec: EventSpec?, zone: String?) -> String {
        if let spec { return fill(spec.sentence[...], zone: zone) ?? DisplayText.escape(event) }
        let rest = fields.filter { !["seq", "job"].contains($0.key) }.sorted { $0.key < $1.key }
        return ([event] + rest.map { "\($0)=\($1.words)" }).map { DisplayText.escape($0) }.joined(separator: " ")
    }

    /// nil when one of the fields outside of brackets is not there.
    private func fill(_ pattern: Substring, zone: String?) -> String? {
        var (result, rest) = ("", pattern)
        while let character = rest.first {
            switch character {
            case "[":
                let inner = rest.dropFirst().prefix { $0 != "]" }
                result += fill(inner, zone: zone) ?? ""
                rest = rest[inner.endIndex...].dropFirst()
            case "{":
                let name = rest.dropFirst().prefix { $0 != "}" }
                guard let text = shown(String(name), zone: zone), !text.isEmpty else { return nil }
                result += text
                rest = rest[name.endIndex...].dropFirst()
            default:
                result.append(character)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    private static let times: Set = ["until", "next_probe", "next_try"]
    private static let sizes: Set = ["size", "sent", "bytes"]

    private func shown(_ name: String, zone: String?) -> String? {
        switch fields[name] {
        case .number(let number) where name.hasSuffix("_ms"):
            // Nobody reads milliseconds of what took minutes.
            DurationText.format(.milliseconds(number < 10_000 ? number : number / 1000 * 1000))
        case .number(let number) where Self.sizes.contains(name): ByteText.format(number)
        case .text(let text) where Self.times.contains(name): DisplayText.escape(WallTime.clock(of: text, in: zone))
        case let value: value.map { DisplayText.escape($0.words) }
        }
    }
}

extension EventValue {
    /// nil for what no line of ours has.
    fileprivate init?(_ json: JSONValue) {
        switch json {
        case .string(let text): self = .text(text)
        case .number(let digits):
            self = json.integer.map { .number($0) } ?? .text(json.double.map { "\($0)" } ?? digits)
        case .boolean(let flag): self = .flag(flag)
        case .array(let items):
            let texts = items.compactMap(\.string)
            guard texts.count == items.count else { return nil }
            self = .list(texts)
        case .null, .object: return nil
        }
    }

    fileprivate var words: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ", ")
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }
}

/// A line of the agent's log as people read it: time, sign, and the event in words. What is no line of the log is shown as it
/// is, escaped.
package struct LogLineText: Sendable {
    /// Whether somebody wants to see a line who wants those of a level and above, and of one job; nil = all, also those about no
    /// job. A line that is not from the log passes, unless one job is asked for.
    package static func isWanted(_ line: LogFields?, level: LogSettings.Level = .debug, job: Int64? = nil) -> Bool {
        guard let line else { return job == nil }
        let isGrave = LogSettings.Level(rawValue: line.level).map { $0 >= level } ?? true
        return isGrave && (job == nil || line.job == job)
    }

    private let zone: String?
    /// The day of the previous line, which is not repeated.
    private var day: String?

    /// - Parameter zone: an IANA name; nil = the system's.
    package init(zone: String? = nil) { self.zone = zone }

    /// The line, with a line for the day before it when the day has changed.
    package mutating func lines(_ raw: some Sequence<UInt8>) -> [StyledText] {
        let bytes = Array(raw)
        guard let line = LogFields(bytes) else { return [StyledText(DisplayText.escape(bytes))] }
        return lines(line)
    }

    package mutating func lines(_ line: LogFields) -> [StyledText] {
        var lines: [StyledText] = []
        let time = WallTime(rfc3339: line.time)
        if let time {
            let day = time.day(in: zone)
            if day != self.day { lines.append(StyledText("— \(day) —", .faint)) }
            self.day = day
        }
        let clock = time.map { $0.clock(in: zone) } ?? DisplayText.escape(line.time)
        let job = line.job.map { StyledText("  #\($0)", .faint) } ?? StyledText()
        let event = EventTable.named[line.event]
        let (sign, tint): (String, TextStyle?) =
            switch line.level {
            case "debug": ("·", .faint)
            case "warning": ("!", .warning)
            case "error": ("✗", .bad)
            default: event?.isGood == true ? ("✓", .good) : (" ", nil)
            }
        let sentence = StyledText(line.sentence(event, zone: zone), line.level == "info" ? nil : tint)
        lines.append(StyledText(clock, .faint) + StyledText(" \(sign) ", tint) + sentence + job)
        return lines
    }
}
