internal import InletCore

extension AgentEvent {
    /// What is said of the speed at which may be sent; `destination` is `*` for all together.
    var limitLine: EventLine? {
        guard case .limitChanged(let destination, let rate, let cause, let until) = self else { return nil }
        var line = Self.line(
            "limit.changed", .info, ("destination", .text(destination ?? "*")),
            ("bandwidth", .text(RateText.format(rate))), ("cause", .text(cause.rawValue)))
        if let rate { line.fields.append(("bytes_per_second", .number(rate))) }
        if let until { line.fields.append(("until", .text(until.rfc3339))) }
        return line
    }
}
