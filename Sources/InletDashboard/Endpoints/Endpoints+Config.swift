internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletJournal

/// The configuration that holds, another one in its place, and how much is logged.
extension Endpoints {
    static let configuration: [Endpoint] = [
        .get("config", "The configuration that holds; secrets are ***.") { _, desk in
            guard let config = try await desk.control.config() else {
                throw APIFault.notFound("this agent has no configuration file")
            }
            return config
        },
        .post("reload", "Reads the configuration file again; a wrong one changes nothing.") { _, desk in
            try await desk.control.reload()
        },
        .get("log/level", "The least important level that is written to the log.") { _, desk in
            guard let report = desk.control.logLevel() else { throw APIFault.conflict("no agent is running") }
            return report
        },
        .post("log/level", "Sets that, until the next start or reload.", LogLevelWish.self) { call, desk, wish in
            desk.control.acting(for: call.visitor.name).setLogLevel(wish)
        },
    ]

    /// For Prometheus.
    static let metrics = Endpoint(
        method: .get, path: "/metrics", summary: "Figures in Prometheus' text format.", need: .read,
        answer: .text(MetricsPage.contentType)
    ) { _, desk in .text(try await MetricsPage(desk.control.agent).text(), type: MetricsPage.contentType) }
}
