internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
package import InletJournal
internal import InletLinux

/// Files of the queue and their batches.
extension Endpoints {
    // MARK: - Looking

    static let jobs = TypedEndpoint.get(
        "jobs", "Files, newest first.", query: filters, isLarge: { $0.limit() > Endpoint.smallList }
    ) { call in try await call.control.jobs(filter(call)) }

    package static let job = TypedEndpoint.get("jobs/{id}", "One file, with the batch that it belongs to.") {
        call throws -> JobReport in
        guard let job = try await call.control.job(call.id()) else { throw noJob(call) }
        return job
    }

    static let story = TypedEndpoint.get("jobs/{id}/story", "Everything known about one file.") {
        call throws -> JobHistoryReport in
        let id = try call.id()
        guard let story = try await call.control.agent.story(id), let job = try await call.control.job(id) else {
            throw noJob(call)
        }
        return JobHistoryReport(story, job, feed: call.context.feed)
    }

    static let thumbnail = Endpoint(
        method: .get, path: Endpoint.base + "jobs/{id}/thumbnail",
        summary: "The small picture in a JPEG file, as its camera made it; 204 without one.", need: .read,
        answer: .text,
        answerType: "image/jpeg", others: [204]
    ) { call, _ in
        let permit = try call.context.largeAnswers?.permitForAnswer()
        guard let picture = try await call.control.agent.picture(of: call.id()) else {
            // No fault: most files have none, and a browser would report each.
            return Response(status: .noContent, headers: [.contentType: "image/jpeg"])
        }
        let response = Response.picture(picture)
        return permit.map { response.holding($0) } ?? response
    }

    static let ignored = TypedEndpoint.get(
        "ignored", "The ignored files of a watched folder, by a short look at it.",
        query: [root, .limit], isLarge: { _ in true }
    ) { call throws -> IgnoredReport in
        guard let text = call.text(root) else { throw APIFault.badRequest("'root' must name a watched folder") }
        let found = try await call.control.agent.ignored(in: call.control.rootNow(text), limit: call.limit())
        guard let found else {
            throw APIFault.notFound("\(DisplayText.escape(text)) is not there now, or slow; try again")
        }
        return IgnoredReport(found)
    }

    package static let list = TypedEndpoint.post(
        "queue/list", "The files of a selection, newest first.", JobSelection.self, need: .read,
        limit: Endpoint.largeBody, isLarge: { $1.limit ?? 0 > Endpoint.smallList }
    ) { call, selection in
        var filter = try selection.filter(at: .now)
        filter.limit = min(filter.limit, selection.limit == nil ? 100 : Endpoint.mostRows)
        return try await call.control.jobs(filter)
    }

    package static let receipts = TypedEndpoint.get(
        "receipts", "Receipts as lines of JSON, newest first.", query: [.limit],
        isLarge: { $0.limit() > Endpoint.smallList }
    ) { call in
        try await call.control.agent.journal.receipts(limit: call.limit()).map { String(decoding: $0, as: UTF8.self) }
    }

    package static let batches = TypedEndpoint.get(
        "batches", "Files that belong together, newest first.", query: [.limit]
    ) { call in
        try await call.control.agent.journal.batches(limit: call.limit()).map { JobReport.Batch($0) }
    }

    private static func noJob(_ call: APICall) -> APIFault { .notFound("there is no job \(call.text(.id) ?? "")") }

    // MARK: - Acting

    package static func act(on action: JobAction) -> TypedEndpoint<NoBody, CommandReport> {
        .post("jobs/{id}/\(action.rawValue)", "\(words(action)) one file.") { call in
            try await call.control.act(action, on: call.id())
        }
    }

    /// The same for every file of a selection, oldest first.
    package static func select(for action: JobAction) -> TypedEndpoint<JobSelection, SelectionReport> {
        .post(
            "queue/\(action.rawValue)", "\(words(action)) the files of a selection.", JobSelection.self,
            query: [.dryRun], limit: Endpoint.largeBody, within: .seconds(3600)
        ) { call, selection in
            try await call.control.act(action, on: selection, dryRun: call.flag(.dryRun))
        }
    }

    package static let clear = TypedEndpoint.post(
        "queue/clear", "Cancels everything that has not ended.", within: .seconds(3600)
    ) { call throws -> CommandReport in
        let (files, skipped) = try await call.control.agent.clear()
        let left = skipped.sorted { $0.key < $1.key }.map {
            "; \($0.value.counted("file")) skipped: \($0.key)"
        }
        return .done("\(files.counted("file")) cancelled" + left.joined())
    }

    private static func words(_ action: JobAction) -> String {
        switch action {
        case .retry: "Queues again or hurries"
        case .cancel: "Cancels"
        case .forget: "Removes from the journal"
        case .first: "Sends before the others"
        case .leave: "Records that a person leaves"
        case .aside: "Moves aside"
        case .remove: "Removes, with a fresh proof of their destinations,"
        }
    }

    // MARK: - Filters

    private static let states = FileState.allCases.map(\.rawValue).joined(separator: "|")
    private static let state = Parameter(
        "state", .pattern("(\(states))(,(\(states)))*"), "States of files, with commas between them.")
    private static let ofRoute = Parameter("route", .text, "The file's route.")
    private static let path = Parameter(
        "path", .text, "A pattern of the path below its root, by gitignore's rules.")
    private static let part = Parameter("q", .text, "Part of the full path; ASCII letters match either case.")
    private static let label = Parameter(
        "label", .text, "NAME=VALUE; may be repeated.", isRepeated: true)
    private static let batch = Parameter("batch", .integer, "The file's batch.")
    private static let before = Parameter("before", .integer, "Only jobs of smaller numbers: the next page.")
    private static let root = Parameter("root", .text, "A watched folder, as the status names it.")
    private static let since = Parameter("since", .time, "Only files admitted at this time or later.")
    private static let until = Parameter("until", .time, "Only files admitted at this time or before.")
    private static let unanswered = Parameter(
        "unanswered", .wordOfFlag, meaningOfUnanswered)

    private static let filters: [Parameter] = [
        state, Parameter("destination", .text, "One of the file's destinations."), ofRoute, path, part, label, batch,
        before, since, until, unanswered, .limit,
    ]

    fileprivate static let meaningOfUnanswered =
        "Only duplicates and rejected files that lie in their place, and that nobody has left there."

    /// No search needs a longer text.
    fileprivate static let longestText = 1000

    fileprivate static func time(_ text: String?, _ name: String) throws(APIFault) -> WallTime? {
        guard let text else { return nil }
        guard let time = WallTime(rfc3339: text) else {
            throw .badRequest("'\(name)' must be a time such as 2026-11-27T18:30:00Z")
        }
        return time
    }

    private static func filter(_ call: APICall) throws -> FileFilter {
        var filter = FileFilter(destination: call.text(.destination), limit: call.limit())
        // An empty text does not mean all files.
        let names = call.text(state).map { $0.split(separator: ",", omittingEmptySubsequences: false) } ?? []
        filter.states = try names.map { name in
            guard let state = FileState(rawValue: String(name)) else {
                let known = FileState.allCases.map(\.rawValue).joined(separator: ", ")
                throw APIFault.badRequest("'\(DisplayText.escape(String(name)))' is not a state; there are \(known)")
            }
            return state
        }
        if filter.states.count > FileState.allCases.count {
            throw APIFault.badRequest("'state' must name each state only once")
        }
        filter.route = call.text(ofRoute)
        filter.path = try call.text(path).map { try GlobPattern($0) }
        filter.text = call.text(part).flatMap { $0.isEmpty ? nil : $0 }
        if let text = filter.text, text.utf8.count > longestText { throw APIFault.badRequest("'q' is too long") }
        for label in call.texts(label) {
            let halves = label.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { throw APIFault.badRequest("'label' must be NAME=VALUE") }
            filter.labels[String(halves[0])] = String(halves[1])
        }
        filter.batch = call.number(batch)
        filter.below = call.number(before)
        (filter.since, filter.until) = (try time(call.text(since), since.name), try time(call.text(until), until.name))
        filter.isUnanswered = call.flag(unanswered)
        return filter
    }
}

/// Selects files of the queue: those that match every given criterion.
package struct JobSelection: Codable, Sendable, NamedSchema {
    /// nil = any.
    package var jobs: [Int64]?
    /// States of files; empty or nil = any.
    package var states: [String]?
    package var destination: String?
    package var route: String?
    /// Matches the path below the file's root.
    package var path: String?
    package var labels: [String: String]?
    package var code: String?
    /// Only files that ended at least this long ago; files that have not ended count by their admission.
    package var older_ms: Int64?
    package var batch: Int64?
    /// Part of the full path; ASCII letters match either case.
    package var text: String?
    package var since: String?
    package var until: String?
    /// Only duplicates and rejected files that lie in their place, and that nobody has left there.
    package var unanswered: Bool?
    /// The answer of a dry run: files that came, or that ended, after the question are not meant.
    package var upto: Int64?
    package var ended_until: String?
    /// The most files; nil = all.
    package var limit: Int?

    static var schemaName: String { "Selection" }
    static let notes: [String: SchemaDescription] = [
        "states": .schema(.list(.fileState)), "path": "A pattern by gitignore's rules.",
        "older_ms": .schema(.from(0, to: nil)), "limit": .schema(.from(0, to: nil)),
        "text": "Part of the full path; ASCII letters match either case.",
        "since": .time("Only files admitted at this time or later."),
        "until": .time("Only files admitted at this time or before."),
        "unanswered": SchemaDescription(stringLiteral: Endpoints.meaningOfUnanswered),
        "upto": "Only files of this number or a smaller one: the answer to a dry run has it.",
        "ended_until": .time(
            "Only files that ended at this time or before; files that have not ended count by their admission."),
    ]

    package init() {}

    /// The most numbers in one selection: each may need its own query of the journal.
    static let mostJobs = 10_000

    /// - Throws: `PatternError` for an invalid path pattern; `APIFault` for a value out of bounds.
    func filter(at now: WallTime) throws -> FileFilter {
        if let age = older_ms, age < 0 { throw APIFault.badRequest("'older_ms' must not be negative") }
        if let jobs, jobs.count > Self.mostJobs {
            throw APIFault.badRequest("a selection may name at most \(Self.mostJobs) jobs")
        }
        if let text, text.utf8.count > Endpoints.longestText { throw APIFault.badRequest("'text' is too long") }
        // It is compared with each file's path, which is no longer.
        if let path, path.utf8.count > 4096 { throw APIFault.badRequest("'path' is longer than any path") }
        let states = states ?? []
        // Each is looked up separately.
        if states.count > FileState.allCases.count {
            throw APIFault.badRequest("a selection must name each state only once")
        }
        var filter = FileFilter(destination: destination, limit: max(0, limit ?? .max))
        filter.states = try states.map { name in
            guard let state = FileState(rawValue: name) else { throw APIFault.badRequest("'\(name)' is not a state") }
            return state
        }
        filter.ids = jobs
        filter.route = route
        filter.path = try path.map { try GlobPattern($0) }
        filter.labels = labels ?? [:]
        filter.code = code
        let ends = [older_ms.map { now + .milliseconds(-$0) }, try Endpoints.time(ended_until, "ended_until")]
        filter.before = ends.compactMap(\.self).min()
        filter.upTo = upto
        filter.batch = batch
        filter.text = text.flatMap { $0.isEmpty ? nil : $0 }
        (filter.since, filter.until) = (
            try Endpoints.time(since, "since"), try Endpoints.time(until, "until")
        )
        filter.isUnanswered = unanswered ?? false
        return filter
    }
}

/// The effect of an order on a selection; with `dry_run`, the effect it would have.
package struct SelectionReport: Codable, Sendable, NamedSchema {
    /// One of the first files of the selection.
    package struct File: Codable, Sendable, NamedSchema {
        package var job: Int64
        package var path: String
        package var size: Int64
        package var state: String

        static var schemaName: String { "SelectedFile" }
        static let notes: [String: SchemaDescription] = ["state": .schema(.fileState)]
    }

    package var matched: Int
    package var bytes: Int64
    package var done: Int
    /// Among `done`: files that waited for their time, and are tried as soon as possible.
    package var hurried: Int
    /// The reasons that hold back some of them.
    package var waits_for: [String]?
    /// Files left alone.
    package var skipped: [String: Int]
    package var files: [File]
    package var dry_run: Bool
    /// The highest number that was looked at, and when: an order that follows a dry run names both, so that it is about
    /// no other files.
    package var upto: Int64
    package var asked_at: String

    static var schemaName: String { "SelectionAnswer" }
    static let notes: [String: SchemaDescription] = [
        "skipped": "Files by the reason.", "upto": "The highest number that was looked at.",
        "asked_at": .time("When the files were looked for."),
    ]

    init(_ outcome: SelectionOutcome, dryRun: Bool) {
        matched = outcome.matched
        bytes = outcome.bytes
        done = outcome.done
        hurried = outcome.hurried
        skipped = outcome.skipped
        files = outcome.shown.map {
            File(job: $0.id, path: $0.path.display, size: $0.size, state: $0.state.rawValue)
        }
        dry_run = dryRun
        (upto, asked_at) = (outcome.highest, outcome.askedAt.rfc3339)
    }
}

extension JobSelection {
    /// The same files as those of a dry run: none that came or ended since.
    package func among(_ plan: SelectionReport) -> JobSelection {
        var selection = self
        (selection.upto, selection.ended_until) = (plan.upto, plan.asked_at)
        return selection
    }
}
