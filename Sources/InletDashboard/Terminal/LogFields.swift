internal import Foundation

/// One line of the agent's log, as far as it is one: a JSON object with a time, a level and an event.
package struct LogFields: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        case text(String)
        case number(Int64)
        case list([String])
        case flag(Bool)
    }

    package var time: String
    package var level: String
    package var event: String
    /// All the others, by their names.
    package var fields: [String: Value]

    /// nil for what is no line of the log.
    package init?(_ line: some Sequence<UInt8>) {
        guard let all = try? JSONDecoder().decode([String: AnyValue].self, from: Data(line)) else { return nil }
        self.init(all.compactMapValues(\.value))
    }

    private init?(_ all: [String: Value]) {
        guard case .text(let time)? = all["ts"], case .text(let level)? = all["level"],
            case .text(let event)? = all["event"]
        else { return nil }
        (self.time, self.level, self.event) = (time, level, event)
        fields = all.filter { !["ts", "level", "event"].contains($0.key) }
    }

    /// The lines of a JSON array, such as the agent answers with; nil for what is none.
    static func all(_ body: [UInt8]) -> [LogFields]? {
        try? JSONDecoder().decode([[String: AnyValue]].self, from: Data(body)).compactMap {
            LogFields($0.compactMapValues(\.value))
        }
    }

    /// Where the agent counts its lines: the number of this one.
    package var sequence: Int64? { if case .number(let number)? = fields["seq"] { number } else { nil } }

    package var job: Int64? { if case .number(let number)? = fields["job"] { number } else { nil } }

    /// Whatever stands in a field; what no line of ours has is left out.
    private struct AnyValue: Decodable {
        let value: Value?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let flag = try? container.decode(Bool.self) {
                value = .flag(flag)
            } else if let number = try? container.decode(Int64.self) {
                value = .number(number)
            } else if let number = try? container.decode(Double.self) {
                value = .text("\(number)")
            } else if let text = try? container.decode(String.self) {
                value = .text(text)
            } else if let items = try? container.decode([String].self) {
                value = .list(items)
            } else {
                value = nil
            }
        }
    }
}
