import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import SystemPackage

/// The access that an agent gives up at its start, and its helper for the rest.
struct Confinement: Sendable {
    let report: ConfinementReport
    /// Empty without confinement.
    private let rules: [AccessRule]
    private let commands: [CommandPattern]

    /// Gives up access, for good. Must run before the first other thread starts, which would keep its access.
    ///
    /// - Throws: `ExitStatus.configuration`, with the reason printed, where the configuration requires an unavailable
    ///   confinement.
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
            try made.host.keep()
        } catch {
            // There is no way back: the access is gone, and nothing can start a program any more.
            throw ExitStatus.failed.saying("the agent could not start: \(error)")
        }
        return made.confinement
    }

    private static func free(_ reason: String) -> Confinement {
        Confinement(report: ConfinementReport(reason: reason), rules: [], commands: [])
    }

    private static func confine(_ config: LoadedConfig) throws(Refusal) -> (ProcessHost, Confinement) {
        let version = try version()
        let threads = ProcessSetup.threads
        if threads != 1 { throw Refusal(threads == 0 ? "/proc is not visible" : "threads were started before") }
        do {
            // Rules apply to existing folders: these are the agent's own.
            try DurableFile.makeDirectories(config.settings.stateDirectory, mode: 0o750, asFolderOwner: true)
            RootOwnership.prepare(config.settings.watch)
            let plan = try plan(config)
            let rules = try plan.rules(on: .current())
            // Writing to a closed connection is then an error instead of the process's end.
            ProcessSetup.ignoreSignals()
            // Always: any file may be busy, and only the helper can tell by whom. It uses the agent's capabilities to
            // examine other processes, and passes none on to programs.
            let host = try ProcessHost(commands: plan.commands)
            let manager = ProcessSetup.environment("NOTIFY_SOCKET")
            try Landlock.restrict(to: rules, usesAbstractSockets: manager?.hasPrefix("@") ?? false)
            // Only now: an agent that could not be confined starts another helper, which needs them.
            ProcessSetup.keepCapabilities()
            let report = ConfinementReport(landlock: version, callsReason: denyCalls(), rules)
            return (host, Confinement(report: report, rules: rules, commands: plan.commands))
        } catch {
            throw Refusal("\(error)")
        }
    }

    private static let noCallFilter = "this kernel or container allows no seccomp filters"

    /// - Returns: the reason for a failure, which the agent tolerates: a kernel without filters is nobody's fault.
    private static func denyCalls() -> String? {
        do throws(SystemError) {
            try CallFilter.apply()
            return nil
        } catch {
            return CallFilter.isAvailable ? "\(error)" : noCallFilter
        }
    }

    /// The access that an agent of this configuration would give up if it started now.
    static func preview(_ config: LoadedConfig) -> ConfinementReport {
        do {
            return ConfinementReport(
                landlock: try version(), callsReason: CallFilter.isAvailable ? nil : noCallFilter,
                try plan(config).rules(on: .current()))
        } catch {
            return ConfinementReport(reason: "\(error)")
        }
    }

    /// Files that steer an agent and that it could change itself, because they lie in a folder that it writes to.
    static func exposed(_ config: LoadedConfig, _ report: ConfinementReport) -> [FilePath] {
        // Only the present routes' programs count, whatever was watched before.
        let plan = AccessPlan(config, home: ProcessSetup.homeDirectory) { ProcessSetup.environment($0) }
        let words = plan.commands.flatMap { command in
            // An argument may be a program, as a shell's is.
            command.words.dropFirst().filter { $0.hasPrefix("/") }.map { FilePath($0) }
                + command.words.prefix(1).compactMap { ProgramFinder.find($0) }
        }
        // People may have asked for changes of the configuration itself.
        let file = config.settings.dashboard?.mayEdit == true ? [] : [config.file]
        // A symlink counts at its own place and at its target.
        return (file + config.credentialFiles + words).filter { path in
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

    /// The reason that a running agent cannot take over another configuration; nil when it can.
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
