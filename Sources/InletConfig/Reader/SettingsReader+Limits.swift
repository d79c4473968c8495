import InletCore

/// How fast may be sent when: `bandwidth:` and `schedule:` of `limits:` and of destinations, and the `window:` of routes.
extension SettingsReader {
    /// - Parameter section: the whole file.
    mutating func bandwidth(_ section: ConfigSection) -> BandwidthLimits {
        let all = section.section("limits")
        if let name = all?.string("zone"), let all {
            zone = name
            if !Timetable.knows(zone: name) {
                report(
                    position("zone", all), "unknown time zone \(Quotation.of(name)); write for example Europe/Berlin")
            }
        }
        var limits = BandwidthLimits()
        if let all { limits.all = timetable(all) }
        for (name, value) in section.section("destinations")?.values ?? [:] {
            guard case .section(let values) = value else { continue }
            let table = timetable(values)
            if table.base != nil || !table.entries.isEmpty { limits.destinations[name] = table }
        }
        return limits
    }

    private mutating func timetable(_ section: ConfigSection) -> Timetable {
        let entries = section.sections("schedule").compactMap { entry -> Timetable.Entry? in
            guard let span = span(entry), let rate = entry.rate("bandwidth") else { return nil }
            return Timetable.Entry(span, rate: rate)
        }
        return Timetable(section.rate("bandwidth") ?? nil, entries, zone: zone)
    }

    /// nil without a window, and after a report.
    mutating func window(_ route: ConfigSection) -> DeliveryWindow? {
        guard let section = route.section("window"), let span = span(section) else { return nil }
        return DeliveryWindow(
            span, above: section.bytes("above") ?? DeliveryWindow.standardSize, zone: zone)
    }

    private mutating func span(_ section: ConfigSection) -> DaySpan? {
        guard let from = section.string("from").flatMap(DaySpan.minute),
            let to = section.string("to").flatMap(DaySpan.minute)
        else { return nil }
        if from == DaySpan.minutesOfDay {
            report(position("from", section), "'from' is before \"24:00\", which is the next day's \"00:00\"")
            return nil
        }
        if from == to {
            report(
                position("to", section),
                "'to' is the same as 'from'; write from \"00:00\" to \"24:00\" for the whole day")
            return nil
        }
        let days = section.strings("days")
        if let days, days.isEmpty, section.positions["days"] != nil {
            report(position("days", section), "'days' names no day; leave the key out for every day")
        }
        return DaySpan(from: from, to: to, days: (days ?? []).compactMap { Weekday(name: $0) })
    }
}
