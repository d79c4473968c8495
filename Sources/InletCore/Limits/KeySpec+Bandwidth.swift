extension KeySpec {
    /// The keys of `limits:`, and of every destination that goes over the network, about the speed of sending.
    package static let bandwidth: [KeySpec] = [
        KeySpec(
            "bandwidth", .rate,
            "How fast may be sent at most, as in 20MiB/s or 50Mbit/s; 0 sends nothing. Without it there is no limit."),
        KeySpec(
            "schedule", .list(.section(schedule)),
            "Other rates for parts of the day; the first entry that matches holds, outside of all bandwidth does."),
    ]

    private static let schedule =
        [KeySpec("bandwidth", .rate, required: true, "The rate meanwhile; 0 sends nothing, off lifts the limit.")]
        + span

    /// A part of the day.
    package static let span: [KeySpec] = [
        KeySpec("from", .time, required: true, "When it begins, by the clock on the wall, as in \"22:00\"."),
        KeySpec("to", .time, required: true, "When it ends, up to \"24:00\"; before from, it ends on the next day."),
        KeySpec(
            "days", .list(.choice(Weekday.allCases.map(\.name))),
            "The days on which it begins; every day without it."),
    ]
}
