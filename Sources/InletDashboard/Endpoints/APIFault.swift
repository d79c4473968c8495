internal import Foundation
internal import HTTPTypes
internal import InletCore
internal import InletJournal

/// Why a request is not answered as it wants: a status, a stable code, and a sentence with what to do.
struct APIFault: Error, Sendable, Equatable {
    var status: Int
    var code: String
    var message: String
    /// When to come again.
    var wait: Duration?
    /// Methods that the path knows.
    var allowed: [String] = []

    init(_ status: Int, _ code: String, _ message: String, wait: Duration? = nil, allowed: [String] = []) {
        self.status = status
        self.code = code
        self.message = message
        self.wait = wait
        self.allowed = allowed
    }

    static func badRequest(_ message: String) -> APIFault { APIFault(400, "bad_request", message) }
    static func notFound(_ message: String) -> APIFault { APIFault(404, "not_found", message) }
    static func conflict(_ message: String) -> APIFault { APIFault(409, "conflict", message) }
    static func tooLarge(_ message: String) -> APIFault { APIFault(413, "too_large", message) }

    /// What an endpoint threw.
    init(_ error: any Error) {
        switch error {
        case let fault as APIFault: self = fault
        case let error as JournalError: self.init(503, "journal", "the journal does not answer: \(error)")
        case let error as PatternError: self = .badRequest("'path' is no pattern: \(error.message)")
        case let error as JobSelection.UnknownState: self = .badRequest("\(error)")
        case let error as DecodingError: self = .badRequest("the body is not what is asked for: \(Self.text(error))")
        default: self.init(500, "internal", "this was not to happen: \(error)")
        }
    }

    /// Without the values, which may be secret.
    private static func text(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            return path.isEmpty ? "" : " in '\(path)'"
        }
        return switch error {
        case .keyNotFound(let key, let context): "'\(key.stringValue)' is missing\(place(context))"
        case .typeMismatch(_, let context), .valueNotFound(_, let context): "another type is needed\(place(context))"
        case .dataCorrupted(let context) where !context.codingPath.isEmpty: "no such value\(place(context))"
        default: "no JSON"
        }
    }
}
