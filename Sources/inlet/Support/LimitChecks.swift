import InletCore

/// How fast may be sent, and when big files are: what the configuration says, in words.
enum LimitCheck {
    static func run(_ settings: Settings, _ findings: inout Findings) {
        let limits = settings.bandwidth
        add(limits.all, "limits", "all destinations together", &findings)
        for destination in settings.destinations {
            guard let table = limits.destinations[destination.name] else { continue }
            add(table, "destination \(destination.name)", "sends", &findings)
        }
        for route in settings.routes {
            guard let window = route.window else { continue }
            findings.add(.fine, "route \(route.name)", "deliveries begin \(window.text), at any time below")
        }
    }

    private static func add(_ table: Timetable, _ what: String, _ who: String, _ findings: inout Findings) {
        for entry in table.hidden {
            findings.add(
                .warning, what, "the entry of its schedule from \(entry.span.text) never holds: others come before it")
        }
        guard table.isLimited else { return }
        for line in table.lines { findings.add(.fine, what, "\(who): \(line)") }
        if table.isClosed {
            findings.add(
                .warning, what, "bandwidth is 0 at all times: nothing is ever sent", remedy: "write 'off' for no limit")
        }
    }
}
