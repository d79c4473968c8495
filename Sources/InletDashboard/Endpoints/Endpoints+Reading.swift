internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import InletJournal

/// Files and batches.
extension Endpoints {
    static let limit = Endpoint.QueryItem(
        name: "limit", schema: .from(1, to: Endpoint.mostRows), note: "At most so many.")

    static let reading: [Endpoint] = [
        .get("status", "What is moving, what waits, and what needs somebody.") { _, context in
            try await context.control.status()
        },
        .getList("jobs", "Files, newest first.", query: jobFilters) { call, context in
            try await context.control.jobs(filter(call))
        }.seated { $0.limit() > Endpoint.smallList },
        .get("jobs/{id}", "One file, with the batch that it belongs to.") { call, context in
            guard let job = try await context.control.job(call.number("id")) else { throw noJob(call) }
            return job
        },
        .get("jobs/{id}/story", "All that is known of one file.") { call, context in
            let id = try call.number("id")
            guard let story = try await context.control.agent.story(id), let job = try await context.control.job(id)
            else {
                throw noJob(call)
            }
            return StoryReport(story, job, feed: context.feed)
        },
        receipts,
        .post("route", "Where a file would go, and why; nothing of it is read.", RouteQuestion.self, need: .read) {
            _, context, question in try await context.control.route(question)
        },
    ]

    static let batches: [Endpoint] = [
        .getList("batches", "Files that belong together, newest first.", query: [limit]) { call, context in
            try await context.control.batches(limit: call.limit())
        },
        .get("batches/{id}/offload", "What became of a batch's files; 'last' is the one that ended last.") {
            call, context in
            let id = call.places["id"] == "last" ? nil : try call.number("id")
            if context.largeSeats != nil { try await refuseHuge(id, context) }
            guard let report = try await context.control.offload(id) else {
                throw APIFault.notFound("there is no such batch")
            }
            return report
        }.describing("id", .pattern("last|[1-9][0-9]{0,17}")).seated(),
    ]

    /// Files of a batch whose report is made for whoever may only look: it is in memory as a whole.
    private static let mostReported = 20_000

    private static func refuseHuge(_ id: Int64?, _ context: APIContext) async throws {
        guard let batch = try await context.control.agent.journal.batch(id) else { return }
        let files = JobReport.Batch(batch).files.values.reduce(0, +)
        if files > mostReported {
            throw APIFault.conflict(
                "this batch has \(files) files, too many for one answer; 'inlet report \(batch.id)' on the agent's machine prints it"
            )
        }
    }

    static func noJob(_ call: APICall) -> APIFault { .notFound("there is no job \(call.places["id"] ?? "")") }

    private static let receipts = Endpoint(
        method: .get, path: Endpoint.base + "receipts", summary: "Receipts as lines of JSON, newest first.",
        need: .read, query: [limit], answer: .json(.list(.text))
    ) { call, context in try await .json(context.control.receipts(limit: call.limit())) }
    .seated { $0.limit() > Endpoint.smallList }

    private static let states = FileState.allCases.map(\.rawValue).joined(separator: "|")

    private static let jobFilters: [Endpoint.QueryItem] = [
        .init(
            name: "state", schema: .pattern("(\(states))(,(\(states)))*"),
            note: "States of files, with commas between them."),
        .init(name: "destination", schema: .text, note: "One that the file goes to."),
        .init(name: "route", schema: .text, note: "The route that took it."),
        .init(name: "path", schema: .text, note: "A pattern of the path below its root, by gitignore's rules."),
        .init(name: "q", schema: .text, note: "A part of the whole path; ASCII letters in either case."),
        .init(name: "label", schema: .text, note: "NAME=VALUE; may be given several times.", isRepeated: true),
        .init(name: "batch", schema: .integer, note: "The batch that it belongs to."),
        .init(name: "before", schema: .integer, note: "Only jobs of smaller numbers: the next page."),
        limit,
    ]

    /// Longer texts are nobody's search.
    private static let longestText = 1000

    static func filter(_ call: APICall) throws -> FileFilter {
        var filter = FileFilter(destination: call.value("destination"), limit: call.limit())
        // One that is left empty is no wish for all of them.
        let names = call.value("state").map { $0.split(separator: ",", omittingEmptySubsequences: false) } ?? []
        filter.states = try names.map { name in
            guard let state = FileState(rawValue: String(name)) else {
                let known = FileState.allCases.map(\.rawValue).joined(separator: ", ")
                throw APIFault.badRequest("'\(DisplayText.escape(String(name)))' is not a state; there are \(known)")
            }
            return state
        }
        if filter.states.count > FileState.allCases.count { throw APIFault.badRequest("'state' names each one once") }
        filter.route = call.value("route")
        filter.path = try call.value("path").map { try GlobPattern($0) }
        filter.text = call.value("q").flatMap { $0.isEmpty ? nil : $0 }
        if let text = filter.text, text.utf8.count > longestText { throw APIFault.badRequest("'q' is too long") }
        for label in call.values("label") {
            let halves = label.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { throw APIFault.badRequest("'label' is NAME=VALUE") }
            filter.labels[String(halves[0])] = String(halves[1])
        }
        filter.batch = call.number(inQuery: "batch")
        filter.below = call.number(inQuery: "before")
        return filter
    }
}
