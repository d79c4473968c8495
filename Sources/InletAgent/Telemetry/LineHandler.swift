internal import InletCore
internal import InletLinux
internal import Logging
internal import Synchronization
internal import SystemPackage

/// Writes one line per event: a JSON object, or text for people.
struct LineHandler: LogHandler {
    let format: LogSettings.Format
    let sink: LogSink
    var logLevel: Logger.Level = .debug
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Fields in an array, because a dictionary would lose their order.
    static func metadata(_ fields: [(String, EventValue)]) -> Logger.Metadata {
        ["fields": .array(fields.map { .array([.string($0.0), $0.1.metadata]) })]
    }

    func log(event: LogEvent) {
        let fields = Self.fields(event.metadata)
        let level = event.level
        let message = event.message.description
        switch format {
        case .json:
            var line =
                "{\"ts\":\"\(WallTime.now.rfc3339)\",\"level\":\"\(level)\",\"event\":\(JSONString.quote(message))"
            for (name, value) in fields { line += ",\(JSONString.quote(name)):\(value.json)" }
            sink.write(line + "}\n")
        case .text:
            let time = WallTime.now.rfc3339
            let pairs = fields.map { " \($0.0)=\($0.1.text)" }.joined()
            sink.write("\(time) \(level) \(message)\(pairs)\n")
        }
    }

    private static func fields(_ metadata: Logger.Metadata?) -> [(String, EventValue)] {
        guard case .array(let items)? = metadata?["fields"] else { return [] }
        return items.compactMap { item in
            guard case .array(let pair) = item, pair.count == 2, case .string(let name) = pair[0] else { return nil }
            return (name, EventValue(pair[1]))
        }
    }
}

extension EventValue {
    fileprivate var metadata: Logger.Metadata.Value {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .stringConvertible(number)
        case .list(let items): .array(items.map { .string($0) })
        }
    }

    fileprivate init(_ metadata: Logger.Metadata.Value) {
        switch metadata {
        case .string(let text): self = .text(text)
        case .stringConvertible(let value): self = (value as? Int64).map { .number($0) } ?? .text("\(value)")
        case .array(let items): self = .list(items.map { "\($0)" })
        case .dictionary(let items): self = .text("\(items)")
        }
    }

    fileprivate var json: String {
        switch self {
        case .text(let text): JSONString.quote(text)
        case .number(let number): String(number)
        case .list(let items): "[" + items.map(JSONString.quote).joined(separator: ",") + "]"
        }
    }

    fileprivate var text: String {
        switch self {
        case .text(let text): text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ",")
        }
    }
}

/// Where lines go; whole lines, in the order they came, whatever thread writes them.
final class LogSink: Sendable {
    private enum Target: Sendable {
        case standardError
        case standardOutput
        case file(FileDescriptor)
    }

    private let target: Target
    private let order = Mutex(())

    /// - Parameter output: `stderr`, `stdout`, or a file's path, which is appended to.
    init(_ output: String) throws(SystemError) {
        switch output {
        case "stderr": target = .standardError
        case "stdout": target = .standardOutput
        default:
            do {
                let options: FileDescriptor.OpenOptions = [.append, .create, .closeOnExec]
                target = .file(
                    try FileDescriptor.open(
                        FilePath(output), .writeOnly, options: options, permissions: [.ownerReadWrite, .groupRead]))
            } catch {
                throw SystemError(call: "open", path: FilePath(output), code: (error as? Errno) ?? .ioError)
            }
        }
    }

    /// A line that cannot be written is lost: the log must never stop the agent.
    func write(_ line: String) {
        order.withLock { _ in
            switch target {
            case .standardError: _ = ProcessSetup.writeStandardError(Array(line.utf8))
            case .standardOutput: _ = ProcessSetup.writeStandardOutput(Array(line.utf8))
            case .file(let descriptor): _ = try? descriptor.writeAll(line.utf8)
            }
        }
    }
}
