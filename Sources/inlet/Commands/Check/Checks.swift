import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletMedia
import InletPipelines
import SystemPackage

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

/// Whether `adopt_check` can find anything: by keys that say the same every time, at destinations that can be asked.
enum AdoptCheck {
    static func run(_ settings: Settings, _ destinations: [Destination], _ findings: inout Findings) {
        guard settings.watch.contains(where: \.adoptCheck) else { return }
        let asked = destinations.filter { ($0.pipeline as? any DeliveryVerifying)?.findsByKey == true }.map(\.name)
        for route in settings.routes {
            let name = "adopt_check, route \(route.name)"
            if !isLasting(route.key) {
                findings.add(
                    .warning, name,
                    "the key '\(route.key.text)' is another one each time, so that no destination has a file under it: all "
                        + "are sent")
            }
            if !route.to.contains(where: asked.contains) {
                findings.add(
                    .warning, name,
                    "none of its destinations can be asked what others have sent: all its files are taken to be there")
            }
        }
    }

    /// Whether a file has the same key another day, at another hour, minute and second.
    private static func isLasting(_ key: KeyTemplate) -> Bool {
        let days: [Int64] = [0, 400 * 86_400_000 + 3_661_001]
        let keys = days.enumerated().map { number, time in
            key.key(
                KeyFields(
                    path: "a/b", modified: 0, category: "c", admitted: WallTime(milliseconds: time),
                    sequence: Int64(number), zone: "UTC"))
        }
        return keys[0] == keys[1]
    }
}

/// `inlet check` of the way to each destination: through which proxy, why, and whether that lets us through.
enum ProxyCheck {
    static func run(_ config: LoadedConfig, _ factory: PipelineFactory, _ findings: inout Findings) async {
        var uses: [(name: String, use: ProxyUse)] = []
        for destination in config.settings.destinations {
            // What is wrong with it, its destination's own check says.
            guard let use = (try? factory.proxyUse(destination)).flatMap({ $0 }) else { continue }
            uses.append((destination.name, use))
        }
        // Where nobody has set any, one word is enough.
        guard uses.contains(where: { isNotable($0.use, config) }) else {
            if !uses.isEmpty { findings.add(.fine, "proxy", "none is set; every destination is reached directly") }
            return
        }
        for (name, use) in uses { await check(use, "destination \(name)", &findings) }
    }

    private static func isNotable(_ use: ProxyUse, _ config: LoadedConfig) -> Bool {
        if case .direct = use.choice { config.settings.proxy != nil } else { true }
    }

    private static func check(_ use: ProxyUse, _ name: String, _ findings: inout Findings) async {
        switch use.choice {
        case .direct(let why): findings.add(.fine, name, "is reached directly (\(why))")
        case .unusable(let why): findings.add(.wrong, name, why)
        case .by(let proxy, let why):
            do throws(DeliveryError) {
                try await use.connect()
                findings.add(.fine, name, "is reached through the proxy \(proxy) (\(why)), which answers")
            } catch {
                findings.add(.unavailable, name, "is to be reached through the proxy \(proxy) (\(why)): \(error)")
            }
        }
    }
}

/// `inlet check` of the dashboard's port: whether it can be had, and who gets in.
enum DashboardCheck {
    static func run(_ config: LoadedConfig, _ findings: inout Findings) async {
        guard let dashboard = config.settings.dashboard else {
            return findings.add(.fine, "dashboard", "none, as there is no dashboard.listen")
        }
        let url = DashboardServer.url(dashboard.listen)
        let held = await ControlAccess.status(at: config.settings.stateDirectory)?.dashboard
        if let held, held.state == .listening, held.url == url {
            return findings.add(.fine, "dashboard", "\(url), served by the running agent, \(access(dashboard))")
        }
        if let fault = await ListenFault.of(dashboard.listen) {
            return findings.add(
                .warning, "dashboard", "cannot listen at \(dashboard.listen.text): \(fault.reason)",
                remedy: fault.remedy)
        }
        findings.add(.fine, "dashboard", "\(url) is free, \(access(dashboard))")
    }

    private static func access(_ dashboard: DashboardSettings) -> String {
        let who = dashboard.listen.isLoopback ? "for this machine only" : "for other machines too"
        return who + (dashboard.isOpen ? ", without a login" : ", with a login")
    }
}

/// `inlet check` of what an agent gives up when it starts, and of what the running one has given up.
enum PrivilegeCheck {
    private static let name = "landlock"

    static func run(_ config: LoadedConfig, _ findings: inout Findings) async {
        let running = await ControlAccess.status(at: config.settings.stateDirectory)?.confinement
        if let running {
            findings.add(.fine, name, "the running agent is \(text(running))")
        }
        if config.settings.landlock == .off {
            return findings.add(.fine, name, "off: an agent may use whatever its user may")
        }
        let preview = Confinement.preview(config)
        if preview.landlock != nil {
            if running == nil { findings.add(.fine, name, "an agent that starts is \(text(preview))") }
            for path in Confinement.exposed(config, preview) {
                findings.add(
                    .warning, name,
                    "\(path.display) lies where the agent may write: who took the agent over could change it",
                    remedy: "keep it in a folder of its own")
            }
            return
        }
        if config.settings.landlock == .required {
            return findings.add(
                .wrong, name, "an agent does not start: \(preview.reason ?? "")", remedy: "write 'landlock: auto'")
        }
        // A kernel without it is no fault of who reads this.
        findings.add(
            Landlock.version == nil ? .fine : .warning, name, "an agent that starts is \(text(preview))")
    }

    private static func text(_ report: ConfinementReport) -> String {
        guard let version = report.landlock else { return "not confined: \(report.reason ?? "")" }
        return "confined (version \(version)): reads below \(report.readable.count) places, writes below "
            + "\(report.writable.count), starts only the programs of the configuration, "
            + (report.denied_calls.map { "has given up \($0) system calls" }
                ?? "has all system calls (\(report.calls_reason ?? "an agent of a version before this one"))")
    }
}

/// Whether what files hold can be told, where a route asks for it.
enum MediaTypeCheck {
    static func run(_ routes: [Route], _ findings: inout Findings) {
        guard asking(routes) != nil else { return }
        if let trouble = trouble(routes) {
            findings.add(.wrong, "media types", trouble)
        } else {
            findings.add(.fine, "media types", "libmagic tells what files hold")
        }
    }

    /// Why routes cannot do what they are asked to; nil where they can, or none asks. Loads libmagic where one does.
    static func trouble(_ routes: [Route]) -> String? {
        guard let route = asking(routes) else { return nil }
        do {
            try ContentType.check()
            return nil
        } catch {
            return "route '\(route.name)' asks for them, but \(error)"
        }
    }

    private static func asking(_ routes: [Route]) -> Route? {
        routes.first { !$0.match.mediaTypes.isEmpty || !$0.validate.mediaTypes.isEmpty }
    }
}

/// Whether the programs of `derive:` are there.
enum DeriveCheck {
    static func run(_ routes: [Route], _ findings: inout Findings) {
        for route in routes {
            for rule in route.derive {
                guard let word = rule.command.first else { continue }
                let name = "derive \(rule.name) of route \(route.name)"
                if let path = ProgramSearch.find(word) {
                    findings.add(.fine, name, "made by \(path.display)")
                } else {
                    findings.add(
                        .warning, name, "there is no program '\(word)'; files go without it",
                        remedy: "install it, or name it with its path")
                }
            }
        }
    }
}
