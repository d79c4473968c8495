internal import Synchronization

/// What somebody may do.
enum Access: String, Codable, Sendable, CaseIterable, SchemaSample, Comparable {
    /// Nothing but log in.
    case none
    /// Look, and change nothing.
    case read
    case full

    static func < (one: Access, other: Access) -> Bool {
        (allCases.firstIndex(of: one) ?? 0) < (allCases.firstIndex(of: other) ?? 0)
    }
}

/// What is asked of those who want in.
enum LoginKind: String, Codable, Sendable, CaseIterable, SchemaSample {
    /// Nothing.
    case none
    case token
    case password
    case either
}

/// What `GET session` answers.
struct SessionReport: Codable, Sendable, Described {
    var access: Access
    var login: LoginKind
    var version: String
}

/// What `POST login` brings. Text only in the request.
struct LoginOrder: Codable, Sendable, Described {
    var secret: String

    static var schemaName: String { "Login" }
    static let notes: [String: SchemaNote] = ["secret": "The token or the password."]
}

/// Every answer that is none.
struct ErrorReport: Codable, Sendable, Described {
    /// Stable: programs may look at it.
    var error: String
    /// What is wrong, and what to do about it.
    var message: String
}

/// Where the page and the API listen, and if they cannot, why.
package struct DashboardReport: Codable, Sendable, Equatable, Described {
    package enum State: String, Codable, Sendable, CaseIterable, SchemaSample {
        case starting
        case listening
        /// Tried again until it works.
        case failing
    }

    package var url: String
    package var state: State
    package var error: String?
}

/// The same, as it changes.
package final class DashboardStatus: Sendable {
    private let report: Mutex<DashboardReport>

    package init(url: String) { report = Mutex(DashboardReport(url: url, state: .starting)) }

    package var current: DashboardReport { report.withLock { $0 } }

    func listens(at url: String) { report.withLock { $0 = DashboardReport(url: url, state: .listening) } }

    /// - Returns: whether that is news.
    func fails(_ reason: String) -> Bool {
        report.withLock { report in
            defer { (report.state, report.error) = (.failing, reason) }
            return report.error != reason
        }
    }
}
