internal import Foundation
internal import InletAgent
internal import InletCore
internal import InletJournal

/// Which files of the queue a question or a command is about: those for which everything that is given holds.
package struct JobSelection: Codable, Sendable, Described {
    /// nil = any.
    package var jobs: [Int64]?
    /// States of files; empty = any.
    package var states: [String] = []
    package var destination: String?
    package var route: String?
    /// Of the path below its root.
    package var path: String?
    package var labels: [String: String] = [:]
    package var code: String?
    /// Files that ended, or while they have not were admitted, so long ago at least.
    package var older_ms: Int64?
    package var batch: Int64?
    /// At most so many; nil = all.
    package var limit: Int?

    static var schemaName: String { "Selection" }
    static let notes: [String: SchemaNote] = [
        "states": .schema(.list(.fileState)), "path": "A pattern by gitignore's rules.",
        "older_ms": .schema(.from(0, to: nil)), "limit": .schema(.from(0, to: nil)),
    ]

    package init() {}

    /// Numbers in one selection: each may lie in a stretch of the journal of its own.
    static let mostJobs = 10_000

    private enum CodingKeys: String, CodingKey {
        case jobs, states, destination, route, path, labels, code, older_ms, batch, limit
    }

    /// What is left out is not asked for.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        jobs = try values.decodeIfPresent([Int64].self, forKey: .jobs)
        states = try values.decodeIfPresent([String].self, forKey: .states) ?? []
        destination = try values.decodeIfPresent(String.self, forKey: .destination)
        route = try values.decodeIfPresent(String.self, forKey: .route)
        path = try values.decodeIfPresent(String.self, forKey: .path)
        labels = try values.decodeIfPresent([String: String].self, forKey: .labels) ?? [:]
        code = try values.decodeIfPresent(String.self, forKey: .code)
        older_ms = try values.decodeIfPresent(Int64.self, forKey: .older_ms)
        batch = try values.decodeIfPresent(Int64.self, forKey: .batch)
        limit = try values.decodeIfPresent(Int.self, forKey: .limit)
    }

    /// - Throws: `PatternError` for a path that is no pattern; `APIFault` for what is out of bounds.
    func filter(at now: WallTime) throws -> FileFilter {
        if let age = older_ms, age < 0 { throw APIFault.badRequest("'older_ms' is less than nothing") }
        if let jobs, jobs.count > Self.mostJobs {
            throw APIFault.badRequest("a selection names at most \(Self.mostJobs) jobs")
        }
        // It is held against each file's path, which is no longer.
        if let path, path.utf8.count > 4096 { throw APIFault.badRequest("'path' is longer than a path can be") }
        // Each is looked for by itself.
        if states.count > FileState.allCases.count { throw APIFault.badRequest("a selection names each state once") }
        var filter = FileFilter(destination: destination, limit: max(0, limit ?? .max))
        filter.states = try states.map { name in
            guard let state = FileState(rawValue: name) else { throw APIFault.badRequest("'\(name)' is not a state") }
            return state
        }
        filter.ids = jobs
        filter.route = route
        filter.path = try path.map { try GlobPattern($0) }
        filter.labels = labels
        filter.code = code
        filter.before = older_ms.map { now + .milliseconds(-$0) }
        filter.batch = batch
        return filter
    }
}

/// What came of a command on a selection, or with `dry_run` what would.
package struct SelectionReport: Codable, Sendable, Described {
    /// One of the first files of the selection.
    package struct File: Codable, Sendable, Described {
        package var job: Int64
        package var path: String
        package var size: Int64
        package var state: String

        static var schemaName: String { "SelectedFile" }
        static let notes: [String: SchemaNote] = ["state": .schema(.fileState)]
    }

    package var matched: Int
    package var bytes: Int64
    package var done: Int
    /// Of `done`: files that waited for their time, and are tried as soon as they may.
    package var hurried: Int
    /// What keeps some of them.
    package var waits_for: [String]?
    /// Those that nothing was done to.
    package var skipped: [String: Int]
    package var files: [File]
    package var dry_run: Bool

    static var schemaName: String { "SelectionAnswer" }
    static let notes: [String: SchemaNote] = ["skipped": "Files by the reason."]

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
    }
}
