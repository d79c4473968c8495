internal import InletAgent
internal import InletCore

/// One event, as a line of the log says it, under its number.
package struct EventReport: Encodable, Sendable {
    let seq: Int64
    let level: LogSettings.Level
    private let json: JSONValue

    init(_ entry: EventRing.Entry) {
        let line = entry.event.line
        seq = entry.seq
        level = line.level
        var object: [String: JSONValue] = [:]
        for (name, value) in line.fields {
            object[name] =
                switch value {
                case .text(let text): .text(text)
                case .number(let number): .integer(number)
                case .list(let items): .list(items.map { .text($0) })
                case .flag(let flag): .flag(flag)
                }
        }
        object["seq"] = .integer(entry.seq)
        object["ts"] = .text(entry.at.rfc3339)
        object["level"] = .text(line.level.rawValue)
        object["event"] = .text(line.name)
        json = .object(object)
    }

    /// The job that it is about; nil for one that is about none.
    var job: Int64? {
        guard case .object(let object) = json, case .integer(let job)? = object["job"] else { return nil }
        return job
    }

    package func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

extension EventReport: Described {
    static var schemaName: String { "Event" }
    static var schema: Schema {
        .object(
            [
                .must("seq", .integer), .must("ts", .time),
                .must("level", .word(LogSettings.Level.allCases.map(\.rawValue))),
                .must("event", .text, "As in the log: job.delivered, destination.down …"),
                .may("was", .text, "What an event that 0.9 renamed was called before; goes away with 0.10."),
            ], more: .anything)
    }
}

/// The last hour in steps.
package struct RatesReport: Codable, Sendable, Equatable {
    package var step_ms: Int64
    /// When the first step began.
    package var from: String
    /// Bytes per second, the oldest first.
    package var total: [Int64]
    /// By destination; those to which nothing went are left out.
    package var destinations: [String: [Int64]]
}

extension RatesReport: Described {
    static var schemaName: String { "Rates" }
    static var schema: Schema {
        .object([
            .must("step_ms", .integer), .must("from", .time), .must("total", .list(.integer), "Bytes per second."),
            .must("destinations", .map(.list(.integer))),
        ])
    }
}
