package import InletCore

/// A line of the agent's log as people read it: time, sign, and the event in words. What is no line of the log is shown as it
/// is, escaped.
package struct LogLineText: Sendable {
    /// Which lines somebody wants to see.
    package struct Filter: Sendable {
        package var level: LogSettings.Level
        /// nil = lines of any file, and of none.
        package var job: Int64?

        package init(level: LogSettings.Level = .debug, job: Int64? = nil) {
            self.level = level
            self.job = job
        }

        /// What is no line of the log cannot be judged: it is let through unless one file is asked for.
        package func allows(_ line: LogFields?) -> Bool {
            guard let line else { return job == nil }
            let isGrave = LogSettings.Level(rawValue: line.level).map { $0 >= level } ?? true
            return isGrave && (job == nil || line.job == job)
        }
    }

    private let zone: String?
    /// The day of the line before, which is not said again.
    private var day: String?

    /// - Parameter zone: an IANA name; nil = the system's.
    package init(zone: String? = nil) { self.zone = zone }

    /// The line, and before it the day when it is another than that of the line before.
    package mutating func lines(_ raw: some Sequence<UInt8>) -> [TintedText] {
        let bytes = Array(raw)
        guard let line = LogFields(bytes) else { return [TintedText(DisplayText.escape(bytes))] }
        return lines(line)
    }

    package mutating func lines(_ line: LogFields) -> [TintedText] {
        var lines: [TintedText] = []
        let time = WallTime(rfc3339: line.time)
        if let time {
            let day = DayClock.day(time, zone: zone)
            if day != self.day { lines.append(TintedText("— \(day) —", .faint)) }
            self.day = day
        }
        let clock = time.map { DayClock.time($0, zone: zone) } ?? DisplayText.escape(line.time)
        let job = line.job.map { TintedText("  #\($0)", .faint) } ?? TintedText()
        let (sign, tint) = Self.look(line)
        lines.append(
            TintedText(clock, .faint) + TintedText(" \(sign) ", tint)
                + TintedText(LogWords.sentence(line, zone: zone), line.level == "info" ? nil : tint) + job)
        return lines
    }

    private static func look(_ line: LogFields) -> (sign: String, tint: Tint?) {
        switch line.level {
        case "debug": ("·", .faint)
        case "warning": ("!", .warning)
        case "error": ("✗", .bad)
        default: LogWords.good.contains(LogWords.current(line.event)) ? ("✓", .good) : (" ", nil)
        }
    }
}
