import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux

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
