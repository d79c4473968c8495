import InletConfig
import InletCore
import InletDashboard

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
