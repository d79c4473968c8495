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
        // That is the answer to what is asked here.
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
        // As above.
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
            for kind in Self.kinds {
                // A decoder tells the type of a value by refusing all others.
                guard let found = try? kind(container) else { continue }
                value = found
                return
            }
            value = nil
        }

        private static let kinds: [@Sendable (any SingleValueDecodingContainer) throws -> Value] = [
            { .flag(try $0.decode(Bool.self)) }, { .number(try $0.decode(Int64.self)) },
            { .text("\(try $0.decode(Double.self))") }, { .text(try $0.decode(String.self)) },
            { .list(try $0.decode([String].self)) },
        ]
    }
}
