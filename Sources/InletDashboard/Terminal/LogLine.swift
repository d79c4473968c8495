internal import InletAgent
package import InletCore

/// One line of the agent's log: a JSON object with a time, a level and an event.
package struct LogFields: Sendable, Equatable {
    package var time: String
    package var level: String
    package var event: String
    /// All other fields, by name.
    package var fields: [String: JSONValue]

    /// nil for other text.
    package init?(_ line: some Sequence<UInt8>) {
        guard let json = JSON.value(line) else { return nil }
        self.init(json)
    }

    private init?(_ json: JSONValue) {
        guard let all = json.object, let time = all["ts"]?.string, let level = all["level"]?.string,
            let event = all["event"]?.string
        else { return nil }
        (self.time, self.level, self.event) = (time, level, event)
        fields = all.filter { !["ts", "level", "event"].contains($0.key) && $0.value.logged != nil }
    }

    /// The lines of a JSON array from the agent; nil for other text.
    static func all(_ body: [UInt8]) -> [LogFields]? {
        JSON.value(body)?.array?.compactMap { LogFields($0) }
    }

    /// The line's number, in answers of a running agent.
    package var sequence: Int64? { fields["seq"]?.integer }
    package var job: Int64? { fields["job"]?.integer }

    // MARK: - In words

    /// The event's sentence. An unknown event shows its name and all its fields.
    func sentence(_ spec: EventSpec?, zone: String?) -> String {
        if let spec { return spec.sentence(in: zone) { fields[$0]?.logged } ?? DisplayText.escape(event) }
        let rest = fields.filter { !["seq", "job"].contains($0.key) }.sorted { $0.key < $1.key }
        return ([event] + rest.map { "\($0)=\($1.logged?.plain ?? "")" }).map { DisplayText.escape($0) }
            .joined(separator: " ")
    }
}

extension JSONValue {
    /// A value as a field of a log line; nil for values that the log never has.
    fileprivate var logged: EventValue? {
        switch self {
        case .string(let text): return .text(text)
        case .number(let digits): return integer.map { .number($0) } ?? .text(double.map { "\($0)" } ?? digits)
        case .boolean(let flag): return .flag(flag)
        case .array(let items):
            let texts = items.compactMap(\.string)
            return texts.count == items.count ? .list(texts) : nil
        case .null, .object: return nil
        }
    }
}

/// A line of the agent's log for people: time, sign, and the event in words. Other text is shown unchanged, escaped.
package struct LogLineText: Sendable {
    /// Selects lines of a level and above, and of one job; nil = all, also those about no job. Text that is not from
    /// the log passes, unless one job is asked for.
    package static func isWanted(_ line: LogFields?, level: LogSettings.Level = .debug, job: Int64? = nil) -> Bool {
        guard let line else { return job == nil }
        let isGrave = LogSettings.Level(rawValue: line.level).map { $0 >= level } ?? true
        return isGrave && (job == nil || line.job == job)
    }

    private let zone: String?
    /// The day of the previous line, to avoid repeating it.
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
