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

    /// `job.delivered job=7 path=/srv/drop/a.mp4`: the text without its time and level. A value with a space or a quote in it
    /// is in quotes, with `\"` and `\\` for those in it, so that none can pass for another field.
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
        let text = DisplayText.escape(plain)
        // A quote with an accent is one letter, and still a quote.
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
