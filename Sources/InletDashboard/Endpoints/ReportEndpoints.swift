internal import HTTPTypes
internal import Hummingbird
package import InletAgent
internal import InletCore
internal import InletJournal

/// Reports on what came from batches and cards.
extension Endpoints {
    /// The `id` of the batch that ended last.
    package static let lastBatch = "last"

    package static let offload = TypedEndpoint.get(
        "batches/{id}/offload", "The report on a batch's files; 'last' is the batch that ended last.",
        places: [Parameter.id.name: .pattern("last|[1-9][0-9]{0,17}")], isLarge: { _ in true }
    ) { call throws -> OffloadReport in
        let journal = call.control.agent.journal
        guard let batch = try await journal.batch(call.text(.id) == lastBatch ? nil : call.id()) else {
            throw APIFault.notFound("there is no such batch")
        }
        let files = batch.counts.values.reduce(0, +)
        if call.context.largeAnswers != nil, files > mostReported {
            throw APIFault.conflict(
                "this batch has \(files) files, too many for one answer; 'inlet report \(batch.id)' on the agent's machine prints it"
            )
        }
        return try await call.control.agent.offload(batch)
    }

    package static let cardReport = TypedEndpoint.get(
        "report", "The report on the files of cards, or on those that came since a time.", query: criteria,
        isLarge: { _ in true }
    ) { call throws -> OffloadReport in try await report(call) }

    /// The same as a document.
    static let cardDocument = Endpoint(
        method: .get, path: Endpoint.base + "report/{form}", summary: "The same report as a page, a text or a table.",
        need: .read, query: criteria, places: [form.name: form.schema], answer: .text, answerType: "text/html"
    ) { call, _ in
        let permit = try call.context.largeAnswers?.permitForAnswer()
        let form = call.text(form).flatMap(OffloadForm.init) ?? .html
        let report = try await report(call)
        var response = Response.text(report.document(form), type: "\(form.mediaType); charset=utf-8")
        response.headers[.contentDisposition] = "inline; filename=\"\(report.fileName).\(form.ending)\""
        return permit.map { response.holding($0) } ?? response
    }

    /// The most files of a report that a port gives: it is in memory as a whole.
    private static let mostReported = 20_000

    private static func report(_ call: APICall) async throws -> OffloadReport {
        var selection = OffloadSelection(cards: call.texts(.card), project: call.text(.project))
        if let text = call.text(.since) {
            guard let since = OffloadSelection.moment(text, at: .now) else {
                throw APIFault.badRequest(
                    "'since' must be a time such as 06:00, an RFC 3339 time, or an age such as 12h")
            }
            selection.since = since
        }
        if selection.isEmpty { throw APIFault.badRequest("name 'card', 'since' or 'project'") }
        do {
            let most = call.context.largeAnswers == nil ? nil : mostReported
            let (report, files) = try await call.control.agent.offload(selection, most: most)
            if let report { return report }
            throw APIFault.conflict(
                "these are \(files) files, too many for one answer; 'inlet report' on the agent's machine prints them")
        } catch let error as OffloadSelection.UnknownCard {
            throw APIFault.notFound("there is no card '\(DisplayText.escape(error.name))'")
        }
    }

    private static let form = Parameter("form", .word(OffloadForm.allCases.map(\.rawValue)))
    private static let criteria: [Parameter] = [.card, .since, .project]
}

extension Parameter {
    package static let card = Parameter(
        "card", .text, "A card's name, UUID or label; may be repeated.", isRepeated: true)
    package static let since = Parameter(
        "since", .text, "Only files admitted since then: 06:00, an RFC 3339 time, or an age such as 12h.")
    package static let project = Parameter("project", .text, "Only files whose label 'project' is this.")
}
