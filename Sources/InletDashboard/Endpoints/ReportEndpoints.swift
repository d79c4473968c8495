internal import HTTPTypes
internal import Hummingbird
package import InletAgent
internal import InletCore
internal import InletJournal
internal import InletLinux

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

    // A POST, because there can be many cards; it changes nothing.
    package static let cardReport = TypedEndpoint.post(
        "report", "The report on the files of cards that meet every criterion.", OffloadRequest.self, need: .read,
        isLarge: { _, _ in true }
    ) { call, request throws -> OffloadReport in try await report(request, call) }

    static let cardDocument = Endpoint(
        method: .get, path: Endpoint.base + "report/{form}", summary: "The same report, to be shown, saved or printed.",
        need: .read, query: criteria, places: [form.name: form.schema], answer: .text, answerType: "text/html"
    ) { call, _ in
        let permit = try call.context.largeAnswers?.permitForAnswer()
        guard let form = call.text(form).flatMap({ OffloadForm(rawValue: $0) }) else {
            throw APIFault.notFound("a report is \(OffloadForm.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let request = OffloadRequest(
            cards: call.texts(ofCard), since: call.text(since), project: call.text(project))
        let report = try await report(request, call)
        var response = Response.text(report.document(form), type: "\(form.mediaType); charset=utf-8")
        // The style stands in the page itself, and there is no script.
        response.headers[.contentSecurityPolicy] =
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
            + "frame-ancestors 'none'; sandbox"
        response.headers[.contentDisposition] = "inline; filename=\"\(report.fileName).\(form.ending)\""
        return permit.map { response.holding($0) } ?? response
    }

    /// The most files of a report that a port gives: it is in memory as a whole.
    private static let mostReported = 20_000

    private static func report(_ request: OffloadRequest, _ call: APICall) async throws -> OffloadReport {
        let selection = try request.selection(at: .now)
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
    private static let ofCard = Parameter(
        "card", .text, "A card's name, UUID or label; may be repeated.", isRepeated: true)
    private static let since = Parameter(
        "since", .text, "Only files admitted since then: 06:00, an RFC 3339 time, or an age such as 12h.")
    private static let project = Parameter("project", .text, "Only files whose label 'project' is this.")
    private static let criteria = [ofCard, since, project]
}

/// Selects the files of a report on cards: those that meet every criterion.
package struct OffloadRequest: Codable, Sendable, NamedSchema {
    /// Names, UUIDs or labels.
    package var cards: [String]?
    package var since: String?
    package var project: String?

    static let notes: [String: SchemaDescription] = [
        "cards": "Names, UUIDs or labels.",
        "since": "Only files admitted since then: 06:00, an RFC 3339 time, or an age such as 12h.",
        "project": "Only files whose label 'project' is this.",
    ]

    package init(cards: [String], since: String?, project: String?) {
        (self.cards, self.since, self.project) = (cards.isEmpty ? nil : cards, since, project)
    }

    /// Each is looked up separately.
    private static let mostCards = 1000

    func selection(at now: WallTime) throws(APIFault) -> OffloadSelection {
        var selection = OffloadSelection(cards: cards ?? [], project: project)
        if let since {
            guard let time = OffloadSelection.moment(since, at: now) else {
                throw .badRequest("'since' must be a time such as 06:00, an RFC 3339 time, or an age such as 12h")
            }
            selection.since = time
        }
        if selection.isEmpty { throw .badRequest("name cards, 'since' or 'project'") }
        if selection.cards.count > Self.mostCards {
            throw .badRequest("a report may name at most \(Self.mostCards) cards")
        }
        return selection
    }
}
