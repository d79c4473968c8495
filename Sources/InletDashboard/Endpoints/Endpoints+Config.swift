internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletJournal

/// The configuration that holds, another one in its place, and how much is logged.
extension Endpoints {
    static let configuration: [Endpoint] = [
        .get("config", "The configuration that holds; secrets are ***.") { _, context in
            guard let config = try await context.control.config() else {
                throw APIFault.notFound("this agent has no configuration file")
            }
            return config
        },
        .post("reload", "Reads the configuration file again; a wrong one changes nothing.") { _, context in
            try await context.control.reload()
        },
        .get("log/level", "The least important level that is written to the log.") { _, context in
            guard let report = context.control.logLevel() else { throw APIFault.conflict("no agent is running") }
            return report
        },
        .post("log/level", "Sets that, until the next start or reload.", LogLevelWish.self) { call, context, wish in
            context.control.acting(for: call.visitor.name).setLogLevel(wish)
        },
    ]

    /// For Prometheus.
    static let metrics = Endpoint(
        method: .get, path: "/metrics", summary: "Figures in Prometheus' text format.", need: .read,
        answer: .text(MetricsPage.contentType)
    ) { _, context in .text(try await MetricsPage(context.control.agent).text(), type: MetricsPage.contentType) }
}
