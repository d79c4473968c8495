// The objects that commands print with --json and that no endpoint answers. Keys may be added, never renamed.

/// `inlet check --json`.
package struct CheckReport: Codable, Sendable, NamedSchema {
    /// From the best to the worst.
    package enum Grade: String, Codable, Sendable, CaseIterable, SchemaSample {
        case fine = "ok"
        case warning
        case unavailable
        case wrong

        package var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    package enum Group: String, Codable, Sendable, CaseIterable, SchemaSample {
        case configuration
        case folders
        case watch
        case destinations
        case system
        // Those of `inlet doctor` alone.
        case program
        case limits
        case clock
        case network
        case errors
    }

    package struct Finding: Codable, Sendable, NamedSchema {
        package var group: Group
        package var check: String
        package var grade: Grade
        package var text: String
        package var remedy: String?
        package var topic: ProblemTopic?

        static var schemaName: String { "CheckFinding" }
        static let notes: [String: SchemaDescription] = [
            "check": "The subject, such as 'destination store'.", "remedy": "Left out where the text says enough.",
            "topic": "The problem's subject, for its cause; left out where that follows from the group.",
        ]

        package init(
            group: Group, check: String, grade: Grade, text: String, remedy: String?, topic: ProblemTopic? = nil
        ) {
            (self.group, self.check, self.grade, self.text, self.remedy) = (group, check, grade, text, remedy)
            self.topic = topic
        }
    }

    package var checks: [Finding]
    package var warnings: Int
    package var errors: Int
    package var exit_code: Int

    static let notes: [String: SchemaDescription] = ["exit_code": "The exit code of the command."]

    package init(checks: [Finding], warnings: Int, errors: Int, exit_code: Int) {
        (self.checks, self.warnings, self.errors, self.exit_code) = (checks, warnings, errors, exit_code)
    }
}

/// A line of `inlet verify --json`: one delivery, or a job without any.
package struct VerifyReport: Codable, Sendable, NamedSchema {
    /// From the worst to the best.
    package enum Verdict: String, Codable, Sendable, CaseIterable, SchemaSample {
        case missing
        case different
        /// You named it, and it has not arrived.
        case undelivered
        case unreachable
        case unknown
        case same
    }

    package var job: Int64
    package var path: String
    package var destination: String
    package var key: String
    package var verdict: Verdict
    package var said: String

    static let notes: [String: SchemaDescription] = [
        "destination": "Empty for a job without deliveries.", "key": "Empty where there is none.",
        "said": "How the copy was compared, or why it was not.",
    ]

    package init(
        _ verdict: Verdict, job: Int64, path: String, destination: String = "", key: String? = nil, said: String
    ) {
        (self.verdict, self.job, self.path) = (verdict, job, path)
        (self.destination, self.key, self.said) = (destination, key ?? "", said)
    }
}

/// A line of `inlet run --dry-run --json`: one file, and its fate.
package struct DryRunReport: Codable, Sendable, NamedSchema {
    package enum Verdict: String, Codable, Sendable, CaseIterable, SchemaSample {
        case planned, rejected, along, awaited, known, adopted, unreadable, unmatched, skipped, irregular
    }

    package var path: String
    package var size: Int64
    package var verdict: Verdict
    package var unit: String?
    package var route: String?
    package var destinations: [String]?
    package var key: String?
    package var on_success: String?
    package var job: Int64?
    package var reason: String?

    static let notes: [String: SchemaDescription] = [
        "unit": "The folder that is delivered as one.", "job": "Of a file that the journal knows.",
    ]

    package init(path: String, size: Int64, verdict: Verdict) {
        (self.path, self.size, self.verdict) = (path, size, verdict)
    }
}

/// A line of `inlet route --json`: one file.
package struct RouteReport: Codable, Sendable, NamedSchema {
    package struct Delivery: Codable, Sendable, NamedSchema {
        package var destination: String
        package var key: String
        package var after: String?

        static var schemaName: String { "RouteReportDelivery" }
        static let notes: [String: SchemaDescription] = ["after": "The destination that must have the file first."]

        package init(destination: String, key: String, after: String?) {
            (self.destination, self.key, self.after) = (destination, key, after)
        }
    }

    package var path: String
    package var matched: Bool
    package var route: String?
    package var category: String?
    package var media_type: String?
    package var deliveries: [Delivery] = []
    package var why: [String]

    static var schemaName: String { "RouteFile" }
    static let notes: [String: SchemaDescription] = ["why": "A sentence for each step."]

    package init(path: String, matched: Bool, why: [String]) {
        (self.path, self.matched, self.why) = (path, matched, why)
    }
}

/// A line of `inlet storage list --json`.
package struct StoredObjectReport: Codable, Sendable, NamedSchema {
    package var key: String
    package var size: Int64
    package var modified: String
    package var etag: String

    static let notes: [String: SchemaDescription] = [
        "size": "Bytes.", "modified": "RFC 3339, as the store gives it.", "etag": "Without quotes.",
    ]

    package init(key: String, size: Int64, modified: String, etag: String) {
        (self.key, self.size, self.modified, self.etag) = (key, size, modified, etag)
    }
}
