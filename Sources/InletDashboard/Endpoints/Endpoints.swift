internal import HTTPTypes
internal import InletAgent
internal import InletCore

/// Everything that can be asked. A new endpoint is one declaration in a file beside this one, and its name in `all`.
package enum Endpoints {
    /// The table, in the order of the document.
    static let all: [Endpoint] =
        [
            status.row, jobs.row, job.row, story.row, receipts.row, route.row, batches.row, offload.row, rates.row,
            log.row, events,
        ] + JobAction.allCases.map { act(on: $0).row } + JobAction.allCases.map { select(for: $0).row } + [
            clear.row, list.row, setPaused(true).row, setPaused(false).row, limits.row, setLimit.row, resumeRoot.row,
            config.row, reload.row, logLevel.row, setLogLevel.row, session.row, login, logout, healthz, readyz,
            undo.row, accessToken.row, backup.row, send.row, follow.row, proofs.row, contents.row, document, metrics,
        ]

    /// What there is at a path, with what stands in its places.
    static func find(
        _ method: String, _ path: String, on table: [Endpoint]
    ) throws(APIFault) -> (endpoint: Endpoint, places: [(name: String, value: String)]) {
        let parts = path.split(separator: "/")
        var allowed: [String] = []
        for endpoint in table {
            guard let places = endpoint.places(of: parts) else { continue }
            if endpoint.verb == method { return (endpoint, places) }
            allowed.append(endpoint.verb)
        }
        throw
            allowed.isEmpty
            ? .notFound("there is nothing at this path; \(Endpoint.base)openapi.json says what there is")
            : APIFault(405, "method", "this path knows \(allowed.joined(separator: " and "))", allowed: allowed)
    }
}

/// Those that more than one endpoint has, or that commands name.
extension Parameter {
    package static let id = Parameter("id", .from(1, to: nil))
    package static let type = Parameter("type", .text)
    package static let destination = Parameter("destination", .text, "Without it, all of them.")
    package static let limit = Parameter("limit", .from(1, to: Endpoint.mostRows), "At most so many.")
    package static let dryRun = Parameter("dry_run", .wordOfFlag, "Only says what would be done.")
    static let job = Parameter("job", .integer, "Only of this file.")
    static let level = Parameter("level", .level, "The least important that is wanted; info without it.")
}

extension Schema {
    static let level = Schema.word(LogSettings.Level.allCases.map(\.rawValue))
}
