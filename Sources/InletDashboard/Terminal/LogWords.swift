internal import InletAgent
internal import InletCore

/// The agent's events in words: a pattern each. `{name}` is a field, and what stands in brackets is left out when one of its
/// fields is not there or empty. An event without a pattern is shown with its name and all its fields.
enum LogWords {
    /// Events that are what everybody hopes for.
    static let good: Set = [
        "job.delivered", "destination.up", "agent.ready", "journal.recovered", "queue.recovered", "queue.normal",
    ]

    /// An event's name now, as it stands in a log file of the version before too.
    static func current(_ event: String) -> String { LogEventSpec.formerNames[event] ?? event }

    static func sentence(_ line: LogFields, zone: String?) -> String {
        var fields = line.fields
        fields["seq"] = nil
        guard let pattern = patterns[current(line.event)] else {
            fields["job"] = nil
            let rest = fields.sorted { $0.key < $1.key }.map { name, value in
                "\(DisplayText.escape(name))=\(plain(value))"
            }
            return ([DisplayText.escape(line.event)] + rest).joined(separator: " ")
        }
        return fill(pattern[...], fields, zone: zone) ?? DisplayText.escape(line.event)
    }

    /// nil when one of the fields outside of brackets is not there.
    private static func fill(_ pattern: Substring, _ fields: [String: LogFields.Value], zone: String?) -> String? {
        var (result, rest) = ("", pattern)
        while let character = rest.first {
            switch character {
            case "[":
                let inner = rest.dropFirst().prefix { $0 != "]" }
                result += fill(inner, fields, zone: zone) ?? ""
                rest = rest[inner.endIndex...].dropFirst()
            case "{":
                let name = rest.dropFirst().prefix { $0 != "}" }
                guard let text = fields[String(name)].map({ shown(String(name), $0, zone: zone) }), !text.isEmpty else {
                    return nil
                }
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

    private static func shown(_ name: String, _ value: LogFields.Value, zone: String?) -> String {
        switch value {
        case .number(let number) where name.hasSuffix("_ms"):
            // Nobody reads milliseconds of what took minutes.
            DurationText.format(.milliseconds(number < 10_000 ? number : number / 1000 * 1000))
        case .number(let number) where sizes.contains(name): ByteText.format(number)
        case .text(let text) where times.contains(name): DisplayText.escape(DayClock.time(text, zone: zone))
        default: plain(value)
        }
    }

    private static func plain(_ value: LogFields.Value) -> String {
        switch value {
        case .text(let text): DisplayText.escape(text)
        case .number(let number): String(number)
        case .list(let items): DisplayText.escape(items.joined(separator: ", "))
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }
}
