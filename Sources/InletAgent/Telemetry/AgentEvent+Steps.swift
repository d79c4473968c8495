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

    /// The line with what a destination says.
    func saying(_ text: String?) -> EventLine {
        guard let text else { return self }
        var line = self
        line.fields.append(("reason", .text(DisplayText.escape(text))))
        return line
    }
}
