import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletMedia
import InletPipelines
import SystemPackage

// The checks of `inlet check`, one function each; those of folders are in FolderChecks.swift.

extension Findings {
    // MARK: - Configuration

    /// The bandwidth limits and the windows for large files, as the configuration sets them.
    mutating func checkLimits(_ settings: Settings) {
        let limits = settings.bandwidth
        checkLimit(limits.all, "limits", "all destinations together")
        for destination in settings.destinations {
            guard let table = limits.destinations[destination.name] else { continue }
            checkLimit(table, "destination \(destination.name)", "sends")
        }
        for route in settings.routes {
            guard let window = route.window else { continue }
            add(.fine, "route \(route.name)", "deliveries begin \(window.text), at any time below")
        }
    }

    private mutating func checkLimit(_ table: Timetable, _ what: String, _ who: String) {
        for entry in table.hidden {
            add(
                .warning, what,
                "the schedule's entry from \(entry.span.text) never applies: earlier entries cover its time")
        }
        guard table.isLimited else { return }
        for line in table.lines { add(.fine, what, "\(who): \(line)") }
        if table.isClosed {
            add(
                .warning, what, "bandwidth is 0 at all times: Inlet never sends anything",
                remedy: "write 'off' for no limit")
        }
    }

    /// Whether `adopt_check` can find anything: that needs keys that never change, and destinations that can be asked.
    mutating func checkAdoption(_ settings: Settings, _ destinations: [Destination]) {
        guard settings.watch.contains(where: \.adoptCheck) else { return }
        let asked = destinations.filter { ($0.pipeline as? any DeliveryVerifying)?.findsByKey == true }.map(\.name)
        for route in settings.routes {
            let name = "adopt_check, route \(route.name)"
            if !Self.isLasting(route.key) {
                add(
                    .warning, name,
                    "the key '\(route.key.text)' changes each time: no destination has it yet, and Inlet sends all files"
                )
            }
            if !route.to.contains(where: asked.contains) {
                add(
                    .warning, name,
                    "none of its destinations can report earlier uploads: Inlet takes all its files as delivered")
            }
        }
    }

    /// Whether names stay since an update, at destinations that got clean ones before.
    mutating func checkNames(_ settings: Settings) {
        let places = settings.undecidedNames
        guard !places.isEmpty else { return }
        do throws(JournalError) {
            let path = StateDirectory.journal(in: settings.stateDirectory)
            guard var journal = try ReadOnlyJournal(path: path), try journal.hasCleanNames() else { return }
        } catch {
            // The check of the state directory says what is wrong with it.
            return
        }
        add(
            .fine, "names",
            "new files keep their names at \(places.joined(separator: ", ")), unlike those that were sent before an update; "
                + "to clean them as before, add 'names: clean' there; 'names: keep' ends this line")
    }

    /// Whether a file's key is the same on another day, and at another hour, minute and second.
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

    // MARK: - Destinations

    /// The proxy of each destination, the reason for it, and whether it allows the connection.
    mutating func checkProxies(_ config: LoadedConfig, _ destinations: [Destination], _ factory: PipelineFactory) async
    {
        var uses: [(name: String, use: ProxyUse)] = []
        for made in destinations {
            guard let settings = config.settings.destinations.first(where: { $0.name == made.name }) else { continue }
            // The destination's own check reports its problems.
            guard let use = (try? factory.proxyUse(of: made, settings)).flatMap({ $0 }) else { continue }
            uses.append((made.name, use))
        }
        let isNotable = uses.contains { if case .direct = $0.use.choice { config.settings.proxy != nil } else { true } }
        // Without any proxy, one word is enough.
        guard isNotable else {
            if !uses.isEmpty { add(.fine, "proxy", "no proxy is set; Inlet reaches every destination directly") }
            return
        }
        for (name, use) in uses {
            let name = "destination \(name)"
            switch use.choice {
            case .direct(let why): add(.fine, name, "is reached directly (\(why))")
            case .unusable(let why): add(.wrong, name, why, topic: .proxy)
            case .by(let proxy, let why):
                do throws(DeliveryError) {
                    try await use.connect()
                    add(.fine, name, "is reached through the proxy \(proxy) (\(why)), which answers")
                } catch {
                    add(
                        .unavailable, name, "cannot be reached through the proxy \(proxy) (\(why)): \(error)",
                        topic: ProblemTopic(error))
                }
            }
        }
    }

    /// Whether Inlet can reach and use a destination; with `upload`, whether it accepts a test object.
    ///
    /// - Parameter mayWrite: whether tiny objects show which checksum `verify: auto` uses.
    mutating func check(_ destination: Destination, upload: Bool, mayWrite: Bool = false) async {
        let name = "destination \(destination.name)"
        // The public key of a server whose key can be pinned: the setting for a self-signed certificate. Only its owner
        // knows whether the key is the right one. The probe reports an unreachable server.
        if let pin = try? await destination.serverPin?() {
            add(.fine, name, "the server's public key now is \(pin) (for 'pin:')")
        }
        do {
            add(.fine, name, try await destination.pipeline.probe())
            if mayWrite, let findings = try await destination.checksumFindings?() {
                for finding in findings { add(finding.isFine ? .fine : .warning, name, finding.text) }
            }
            if upload {
                for line in try await destination.testUpload() { add(line.0, name, line.1) }
            }
        } catch {
            add(error, at: destination.name)
        }
        if let warning = await destination.expiry?(.now) { add(.warning, name, warning) }
    }

    /// A destination that cannot be reached or used, with the remedy.
    mutating func add(_ error: DeliveryError, at destination: String) {
        add(
            .unavailable, "destination \(destination)", "\(error)", remedy: Self.remedy(for: error, at: destination),
            topic: ProblemTopic(error))
    }

    /// The remedy for a destination that cannot be reached or used; nil where the reason is enough.
    private static func remedy(for error: DeliveryError, at destination: String) -> String? {
        if case .credentials = error.verdict {
            return "update the credentials of '\(destination)'; a running agent retries automatically"
        }
        switch error.code {
        case .connectFailed, .timedOut, .stalled, .connectionLost:
            return "check the server, the address of '\(destination)', and any firewall or proxy in between"
        case .nameNotFound:
            return "check the address of '\(destination)', and this machine's name server"
        case .tlsFailed: return "check this machine's clock; for a self-signed certificate, set 'pin:'"
        case .clockSkewed: return "set this machine's clock (timedatectl set-ntp true)"
        case .serverError, .badAnswer:
            return "check that the address of '\(destination)' is right and the service works"
        default: return nil
        }
    }

    /// Whether viewers can find the objects that a destination registers.
    mutating func checkStorage(of destination: Destination, _ all: [DestinationSettings]) {
        guard let name = destination.storage?.destination, let storage = all.first(where: { $0.name == name }),
            storage.values.string(DestinationSetup.publicURL.key) == nil
        else { return }
        add(
            .warning, "destination \(destination.name)",
            "'\(name)' has no public_url: registered objects would have no address, or one that needs a login",
            remedy: "give '\(name)' a public_url: the address under which its files can be read")
    }

    /// Findings of the kinds about their settings and routes.
    mutating func checkKinds(_ settings: Settings) {
        for destination in settings.destinations {
            guard let kind = DestinationKinds.named(destination.type) else { continue }
            for remark in kind.remarks(on: destination, settings.routes) {
                add(remark.isFine ? .fine : .warning, "destination \(destination.name)", remark.text)
            }
        }
    }

    /// The receivers of notifications. This sends none; `inlet notify test` does.
    mutating func checkReceivers(_ receivers: [NotifySettings], _ notificationClients: NotificationClients) {
        for receiver in receivers {
            let what = "notify \(receiver.name)"
            switch receiver.receiver {
            case .webhook:
                let host = notificationClients.webhooks[receiver.name]?.host ?? ""
                add(.fine, what, "\(host) is notified by POST; test it with 'inlet notify test \(receiver.name)'")
            case .service(let service):
                let host = notificationClients.services[receiver.name]?.host ?? ""
                add(.fine, what, "\(service.kind) at \(host); test it with 'inlet notify test \(receiver.name)'")
            case .exec(let words): checkProgram(words, what)
            }
        }
    }

    /// The program of a command that Inlet runs by itself.
    mutating func checkProgram(_ words: [String], _ what: String) {
        let program = FilePath(words.first ?? "")
        if ChildProcess.isExecutable(program) { return add(.fine, what, "\(program.display) can be run") }
        add(
            .wrong, what, "\(program.display) does not exist, or user \(ProcessSetup.userID) may not run it",
            remedy: "put the program there, then run: chmod +x \(program.display)")
    }

    // MARK: - System

    /// The dashboard's port: whether it is free, and who may log in.
    mutating func checkDashboard(_ config: LoadedConfig) async {
        guard let dashboard = config.settings.dashboard else {
            return add(.fine, "dashboard", "none, as there is no dashboard.listen")
        }
        let access =
            (dashboard.listen.isLoopback ? "for this machine only" : "for other machines too")
            + (dashboard.isOpen ? ", without a login" : ", with a login")
        let url = DashboardServer.url(dashboard.listen)
        let held = await ControlAccess.status(at: config.settings.stateDirectory)?.dashboard
        if let held, held.state == .listening, held.url == url {
            return add(.fine, "dashboard", "\(url), served by the running agent, \(access)")
        }
        if let fault = await ListenFault.of(dashboard.listen) {
            return add(
                .warning, "dashboard", "cannot listen at \(dashboard.listen.text): \(fault.reason)",
                remedy: fault.remedy)
        }
        add(.fine, "dashboard", "\(url) is free, \(access)")
    }

    /// The access that an agent gives up when it starts, and that the running one has given up.
    mutating func checkConfinement(_ config: LoadedConfig) async {
        let name = "landlock"
        let running = await ControlAccess.status(at: config.settings.stateDirectory)?.confinement
        if let running { add(.fine, name, "the running agent is \(Self.text(running))") }
        if config.settings.landlock == .off {
            return add(.fine, name, "off: an agent has all rights of its user")
        }
        let preview = Confinement.preview(config)
        if preview.landlock != nil {
            if running == nil { add(.fine, name, "an agent that starts is \(Self.text(preview))") }
            for path in Confinement.exposed(config, preview) {
                add(
                    .warning, name,
                    "\(path.display) lies where the agent may write: an attacker who controls the agent could change it",
                    remedy: "keep it in a folder of its own")
            }
            return
        }
        if config.settings.landlock == .required {
            return add(
                .wrong, name, "an agent does not start: \(preview.reason ?? "")", remedy: "write 'landlock: auto'")
        }
        // The user cannot help a kernel without Landlock.
        add(Landlock.version == nil ? .fine : .warning, name, "an agent that starts is \(Self.text(preview))")
    }

    private static func text(_ report: ConfinementReport) -> String {
        guard let version = report.landlock else { return "not confined: \(report.reason ?? "")" }
        return "confined (version \(version)): reads below \(report.readable.count) places, writes below "
            + "\(report.writable.count), starts only the programs of the configuration, "
            + (report.denied_calls.map { "gave up \($0) system calls" }
                ?? "has all system calls (\(report.calls_reason ?? "an agent of a version before this one"))")
    }

    /// Whether Inlet can find out the content type of files, where a route needs it.
    mutating func checkMediaTypes(_ routes: [Route]) {
        guard let route = Self.asksForMediaTypes(routes) else { return }
        let trouble = Self.mediaTypeTrouble(route)
        add(trouble == nil ? .fine : .wrong, "media types", trouble ?? "libmagic finds the content type of files")
    }

    /// Why routes cannot get content types; nil where they can, or none needs them. Loads libmagic where one does.
    static func mediaTypeTrouble(_ routes: [Route]) -> String? {
        asksForMediaTypes(routes).flatMap { mediaTypeTrouble($0) }
    }

    private static func mediaTypeTrouble(_ route: Route) -> String? {
        do {
            try ContentType.check()
            return nil
        } catch {
            return "route '\(route.name)' asks for them, but \(error)"
        }
    }

    private static func asksForMediaTypes(_ routes: [Route]) -> Route? {
        routes.first { !$0.match.mediaTypes.isEmpty || !$0.validate.mediaTypes.isEmpty }
    }

    /// Whether the programs of `derive:` exist.
    mutating func checkDerivations(_ routes: [Route]) {
        for route in routes {
            for rule in route.derive {
                guard let word = rule.command.first else { continue }
                let name = "derive \(rule.name) of route \(route.name)"
                if let path = ProgramFinder.find(word) {
                    add(.fine, name, "made by \(path.display)")
                } else {
                    add(
                        .warning, name, "Inlet finds no program '\(word)'; files are sent without it",
                        remedy: "install it, or name it with its path")
                }
            }
        }
    }
}
