import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import SystemPackage

/// What an agent gives up at its start, and what it asks of its process host instead.
struct Confinement: Sendable {
    let report: ConfinementReport
    /// Empty where nothing was given up.
    private let rules: [AccessRule]
    private let commands: [CommandPattern]

    /// Gives it up, for good. Only before the first thread has started: others would keep it.
    ///
    /// - Throws: `ExitStatus.configuration`, with the reason printed, where the configuration requires what cannot be done.
    static func enter(_ config: LoadedConfig) throws -> Confinement {
        guard config.settings.landlock != .off else { return free("landlock: off") }
        let made: (host: ProcessHost, confinement: Confinement)
        do throws(Refusal) {
            made = try confine(config)
        } catch {
            if config.settings.landlock == .required {
                throw ExitStatus.configuration.saying("landlock: required, but unavailable: \(error)")
            }
            return free("\(error)")
        }
        do throws(SystemError) {
            try made.host.begin()
        } catch {
            // There is no way back: what has been given up is gone, and nothing is left that could start a program.
            throw ExitStatus.failed.saying("the agent could not start: \(error)")
        }
        return made.confinement
    }

    private static func free(_ reason: String) -> Confinement {
        // Programs are not given what only the agent needs.
        ProcessSetup.keepCapabilities()
        return Confinement(report: ConfinementReport(reason: reason), rules: [], commands: [])
    }

    private static func confine(_ config: LoadedConfig) throws(Refusal) -> (ProcessHost, Confinement) {
        let version = try version()
        let threads = ProcessSetup.threads
        if threads != 1 { throw Refusal(threads == 0 ? "/proc is not visible" : "threads were started before") }
        do {
            // A rule is for what is there: these are the agent's own.
            try DurableFile.makeDirectories(config.settings.stateDirectory, mode: 0o750, asFolderOwner: true)
            RootOwnership.prepare(config.settings.watch)
            let plan = try plan(config)
            let rules = try plan.rules(on: .current())
            // A peer that has gone is an error, and no end.
            ProcessSetup.ignoreSignals()
            // It looks at other processes with what the agent was given, and gives none of that to programs.
            let host = try ProcessHost([HostCommand.name], commands: plan.commands)
            ProcessSetup.keepCapabilities()
            let manager = ProcessSetup.environment("NOTIFY_SOCKET")
            try Landlock.restrict(to: rules, usesAbstractSockets: manager?.hasPrefix("@") ?? false)
            let report = ConfinementReport(landlock: version, callsReason: denyCalls(), rules)
            return (host, Confinement(report: report, rules: rules, commands: plan.commands))
        } catch {
            throw Refusal("\(error)")
        }
    }

    private static let noCallFilter = "this kernel or container allows no seccomp filters"

    /// - Returns: why not, which keeps no agent from its work: a kernel without filters is nobody's fault.
    private static func denyCalls() -> String? {
        do throws(SystemError) {
            try CallFilter.apply()
            return nil
        } catch {
            return CallFilter.isAvailable ? "\(error)" : noCallFilter
        }
    }

    /// What an agent of this configuration would give up if it were started now.
    static func preview(_ config: LoadedConfig) -> ConfinementReport {
        do {
            return ConfinementReport(
                landlock: try version(), callsReason: CallFilter.isAvailable ? nil : noCallFilter,
                try plan(config).rules(on: .current()))
        } catch {
            return ConfinementReport(reason: "\(error)")
        }
    }

    /// What an agent is steered by and could change itself, because it lies in a folder that it writes to.
    static func exposed(_ config: LoadedConfig, _ report: ConfinementReport) -> [FilePath] {
        // Programs are those of the routes that are there, whatever was watched before.
        let plan = AccessPlan(config, home: ProcessSetup.homeDirectory) { ProcessSetup.environment($0) }
        let words = plan.commands.flatMap { command in
            // An argument may be a program's own text: that of a shell, for example.
            command.words.dropFirst().filter { $0.hasPrefix("/") }.map { FilePath($0) }
                + command.words.prefix(1).compactMap { ProgramFinder.find($0) }
        }
        // Of a symlink where it lies and where it leads.
        return ([config.file] + config.credentialFiles + words).filter { path in
            report.mayWrite(in: path) || report.mayWrite(in: path.removingLastComponent())
        }
    }

    private static func version() throws(Refusal) -> Int {
        guard let version = Landlock.version else {
            throw Refusal("this kernel has no Landlock, or it is switched off")
        }
        guard version >= Landlock.leastVersion else {
            throw Refusal("this kernel's Landlock (version \(version)) lets nothing be renamed; Linux 5.19 is needed")
        }
        return version
    }

    private static func plan(_ config: LoadedConfig) throws(SystemError) -> AccessPlan {
        let former = try FormerRoots(stateDirectory: config.settings.stateDirectory).beside(config.settings.watch)
        return AccessPlan(
            config, former: former, home: ProcessSetup.homeDirectory, manual: ManualFolder.places
        ) { ProcessSetup.environment($0) }
    }

    /// Why another configuration cannot take the place of this one while the agent runs; nil when it can.
    func refusal(of config: LoadedConfig) -> String? {
        if rules.isEmpty { return nil }
        let plan: AccessPlan
        let ground: FileSystemLayout
        do throws(SystemError) { (plan, ground) = (try Self.plan(config), try .current()) } catch { return "\(error)" }
        if let path = plan.beyond(rules, on: ground) {
            return "\(path.display) is not among the places that the agent kept at its start (landlock:); restart it"
        }
        if let program = plan.beyond(commands) {
            return
                "the program '\(program)' is not among those that the agent kept at its start (landlock:); restart it"
        }
        return nil
    }
}

/// The process that `inlet run` starts for itself; no command for people.
struct HostCommand: ParsableCommand {
    static let name = "process-host"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Starts programs for a confined 'inlet run'.", shouldDisplay: false)

    func run() { ProcessHostServer.serve() }
}
