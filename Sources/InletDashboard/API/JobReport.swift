package import InletAgent
internal import InletCore
package import InletJournal

/// One file and its deliveries.
package struct JobReport: Codable, Sendable, NamedSchema {
    package struct Delivery: Codable, Sendable, NamedSchema {
        package var destination: String
        package var key: String?
        package var state: String
        package var attempts: Int
        /// The destination that must have the file first.
        package var after: String?
        package var next_at: String?
        package var code: String?
        package var reason: String?
        package var url: String?
        package var etag: String?
        package var verified: String?
        /// Further facts from the destination; nothing secret.
        package var details: [String: String]?
        /// The job that brought the content, where it was not sent.
        package var same_as: Int64?
        package var priority: String
        /// Its first attempt since a person sent it again.
        package var started_at: String?
        package var ended_at: String?

        static let notes: [String: SchemaDescription] = [
            "next_at": .time, "started_at": .time, "ended_at": .time,
            "same_as": "The job that brought its content; this file was not sent.",
            "priority": .schema(.word(Priority.allCases.map(\.rawValue))),
        ]
    }

    package var job: Int64
    package var path: String
    package var size: Int64
    package var state: String
    package var route: String?
    package var labels: [String: String]?
    package var code: String?
    package var reason: String?
    /// When it was written last.
    package var modified_at: String
    package var admitted_at: String
    package var ended_at: String?
    package var finished_at: String?
    package var disposition: String?
    /// The orders that would do something now.
    package var actions: [String]
    /// A file that was not sent lies in its place, and no person has left it there.
    package var unanswered: Bool?
    package var deliveries: [Delivery]
    /// The batch it belongs to; only in an answer about a single job.
    package var batch: Batch?

    package typealias Batch = BatchReport

    static let notes: [String: SchemaDescription] = [
        "path": "Escaped for display.", "state": .schema(.fileState), "modified_at": .time, "admitted_at": .time,
        "ended_at": .time,
        "finished_at": .time,
        "actions": .schema(.list(.word(JobAction.allCases.map(\.rawValue)))),
        "unanswered": "A file that was not sent lies in its place, and nobody has said that it may.",
    ]

    package init(_ job: Job, batch: InletJournal.Batch? = nil, actions: [JobAction]) {
        self.batch = batch.map { Batch($0) }
        let file = job.file
        self.job = file.id
        path = file.fullPath.display
        size = file.identity.size
        state = file.state.rawValue
        route = file.route
        labels = file.labels.isEmpty ? nil : file.labels
        code = file.code?.rawValue
        reason = file.reason
        modified_at = WallTime(nanoseconds: file.identity.modified).rfc3339
        admitted_at = file.admittedAt.rfc3339
        ended_at = file.endedAt?.rfc3339
        finished_at = file.finishedAt?.rfc3339
        disposition = file.disposition
        self.actions = actions.map(\.rawValue)
        unanswered = job.refusal(of: .leave) == nil ? true : nil
        deliveries = job.deliveries.map { row in
            Delivery(
                destination: row.destination, key: row.proof?.key ?? row.key, state: row.state.rawValue,
                attempts: row.attempts,
                after: row.afterID.flatMap { id in job.deliveries.first { $0.id == id }?.destination },
                next_at: row.state == .ready && !row.isHeld ? row.nextAt.rfc3339 : nil,
                code: row.code?.rawValue, reason: row.reason, url: row.proof?.url, etag: row.proof?.etag,
                verified: row.proof?.method.rawValue, details: row.proof?.details, same_as: row.proof?.sameAs,
                priority: row.priority.rawValue, started_at: row.startedAt?.rfc3339, ended_at: row.endedAt?.rfc3339)
        }
    }
}

/// Ignored files of a watched folder.
struct IgnoredReport: Codable, Sendable, NamedSchema {
    struct File: Codable, Sendable, NamedSchema {
        var path: String
        /// It stands for everything in it.
        var folder: Bool?
        var reason: String

        static var schemaName: String { "IgnoredFile" }
        static let notes: [String: SchemaDescription] = ["path": "Escaped for display."]
    }

    var files: [File]
    /// The look ended before the folder did.
    var more: Bool
    var looked: Int

    static var schemaName: String { "IgnoredAnswer" }
    static let notes: [String: SchemaDescription] = [
        "more": "The look ended before the folder did.", "looked": "How many names were looked at.",
    ]

    init(_ found: IgnoredFiles) {
        files = found.files.map { File(path: $0.path.display, folder: $0.isFolder ? true : nil, reason: $0.reason) }
        (more, looked) = (found.isMore, found.looked)
    }
}

/// The answer to an order: whether it did anything, and a sentence.
package struct CommandReport: Codable, Sendable, NamedSchema {
    package var done: Bool
    package var message: String
    /// The job that `send` queued.
    package var job: Int64?
    /// Whether that job was delivered before, so that `send` sends nothing.
    package var known: Bool?

    static var schemaName: String { "CommandAnswer" }

    package static func done(_ message: String) -> CommandReport { CommandReport(done: true, message: message) }
    package static func refused(_ message: String) -> CommandReport { CommandReport(done: false, message: message) }
}

/// The details of one file beyond its row, as far as they are remembered.
struct JobHistoryReport: Encodable, Sendable, NamedSchema {
    /// A part that a destination has proved.
    struct Part: Codable, Sendable, NamedSchema {
        var destination: String
        var part: Int
        var size: Int64
        /// Without quotes.
        var etag: String
    }

    var job: JobReport
    /// Oldest first.
    var events: [EventReport]
    /// Earlier events may be forgotten; left out when there are none.
    var events_since: String?
    var parts: [Part]
    /// The receipt's text; left out while there is none.
    var receipt: JSONValue?
    /// Whether it may have a small picture (`jobs/{id}/thumbnail`): the file itself is not asked.
    var thumbnail: Bool

    static var schema: Schema {
        .object([
            .must("job", .named(JobReport.self)), .must("events", .list(.named(EventReport.self)), "Oldest first."),
            .may("events_since", .time, "Earlier events are no longer known."),
            .must("parts", .list(.named(Part.self))), .may("receipt", .object([], more: .anything)),
            .must("thumbnail", .flag, "Whether it is a JPEG file, which may have a small picture."),
        ])
    }

    init(_ story: AgentControl.JobRecord, _ job: JobReport, feed: ActivityFeed?) {
        (self.job, thumbnail) = (job, story.mayHavePicture)
        events = feed?.newest(EventRing.most, level: .debug, job: job.job) ?? []
        events_since = feed?.since?.rfc3339
        parts = story.parts.map { Part(destination: $0.destination, part: $0.number, size: $0.size, etag: $0.etag) }
        // A receipt that is not JSON is shown as text.
        receipt = story.receipt.map {
            JSON.value($0) ?? .object(["unreadable": .string(String(decoding: $0, as: UTF8.self))])
        }
    }
}

extension Schema {
    static let fileState = Schema.word(FileState.allCases.map(\.rawValue))
}

/// The progress of jobs, in their order: those that have ended, and the present step of the first one that has not.
/// Later ones are not examined, so that thousands of jobs can be asked about many times a second.
package struct FollowReport: Codable, Sendable, NamedSchema {
    /// A file in short: one order may report tens of thousands.
    package struct File: Codable, Sendable, NamedSchema {
        package struct Place: Codable, Sendable {
            package var destination: String
            package var state: String
            package var key: String?
            package var url: String?
        }

        package var job: Int64
        package var path: String
        package var size: Int64
        package var state: String
        package var reason: String?
        package var places: [Place]

        static var schemaName: String { "FollowFile" }
    }

    /// A job that has ended, or that waits for a destination that is away.
    package struct End: Codable, Sendable, NamedSchema {
        package var job: Int64
        /// nil when the journal no longer has it (`inlet queue forget`).
        package var report: File?
        /// Why its end is not in sight: the destination that it waits for is away.
        package var waits_for: String?

        static var schemaName: String { "FollowEnd" }
    }

    /// The most jobs in one question: more would keep others from the journal.
    package static let most = 128

    /// The leading jobs that need no more waiting, in their order.
    package var ends: [End]
    /// The first job still in progress; nil when there is none.
    package var next: File?
    /// Its running transfers, and those that its destinations are working on.
    package var moving: [StatusReport.Transfer]
}

extension FollowReport.File {
    init(_ job: Job) {
        let file = job.file
        self.init(
            job: file.id, path: file.fullPath.display, size: file.identity.size, state: file.state.rawValue,
            reason: file.reason,
            places: job.deliveries.map { row in
                Place(
                    destination: row.destination, state: row.state.rawValue, key: row.proof?.key ?? row.key,
                    url: row.proof?.url)
            })
    }
}
