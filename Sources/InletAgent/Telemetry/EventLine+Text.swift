internal import InletCore
internal import InletLinux

extension EventLine {
    /// The line as it is written, with its end: a JSON object, or text for people.
    func text(_ format: LogSettings.Format, at time: WallTime) -> [UInt8] {
        switch format {
        case .json: json(time)
        case .text: Array("\(time.rfc3339) \(level) \(words)\n".utf8)
        }
    }

    /// `job.delivered job=7 path=/srv/drop/a.mp4`: the text without its time and level.
    var words: String { name + fields.map { " \($0.0)=\($0.1.text)" }.joined() }

    private func json(_ time: WallTime) -> [UInt8] {
        var object = JSONLine()
        object.add("ts", time.rfc3339)
        object.add("level", "\(level)")
        object.add("event", name)
        for (name, value) in fields {
            switch value {
            case .text(let text): object.add(name, text)
            case .number(let number): object.add(name, number)
            case .list(let items): object.add(name, items)
            case .flag(let isSet): object.add(name, isSet)
            }
        }
        return object.finished + [UInt8(ascii: "\n")]
    }
}

extension EventValue {
    fileprivate var text: String {
        guard case .text(let text) = self else { return plain }
        return text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text
    }

    /// Without quotes.
    var plain: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ",")
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }
}
