internal import InletCore

/// Fields of lines that only some deliveries have.
extension EventLine {
    /// The line with how far a delivery is, where bytes do not tell.
    func with(_ step: StepProgress?) -> EventLine {
        guard let step else { return self }
        var line = self
        line.fields += [
            ("percent", .number(Int64(step.percent.rounded(.down)))), ("step", .text(DisplayText.escape(step.step))),
        ]
        return line
    }

    /// The line with a rate that is one, and with when another holds.
    func limited(_ rate: Int64?, _ until: WallTime?) -> EventLine {
        var line = self
        if let rate { line.fields.append(("bytes_per_second", .number(rate))) }
        if let until { line.fields.append(("until", .text(until.rfc3339))) }
        return line
    }

    /// The line with what a destination says.
    func saying(_ text: String?) -> EventLine {
        guard let text else { return self }
        var line = self
        line.fields.append(("reason", .text(DisplayText.escape(text))))
        return line
    }

    /// The line with a file's labels, as `name=value`.
    func labelled(_ labels: [String: String]) -> EventLine {
        if labels.isEmpty { return self }
        var line = self
        let pairs = labels.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") }
        line.fields.append(("labels", .list(pairs)))
        return line
    }

    /// The line of an attempt that goes on with what an earlier process began.
    func resumed(_ isResumed: Bool) -> EventLine {
        guard isResumed else { return self }
        var line = self
        line.fields.append(("resumed", .flag(true)))
        return line
    }
}
