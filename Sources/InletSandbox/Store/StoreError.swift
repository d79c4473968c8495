/// What the store refuses, with the status and code that S3 and R2 give for it (S3 API reference, "Error responses").
struct StoreError: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// Further elements of the XML body, in order.
    var details: [Detail] = []

    struct Detail: Equatable {
        var name: String
        var text: String
    }

    static func noSuchUpload(_ id: String) -> Self {
        Self(
            status: 404, code: "NoSuchUpload",
            message: "No upload \(id) is open: it was completed, aborted or never made.")
    }
    static func noSuchKey(_ key: String) -> Self {
        Self(status: 404, code: "NoSuchKey", message: "There is no object \(key).")
    }
    static func invalidKey(_ reason: String) -> Self {
        Self(status: 400, code: "InvalidArgument", message: "The key is refused: \(reason).")
    }
    static func badRequest(_ message: String) -> Self {
        Self(status: 400, code: "InvalidRequest", message: message)
    }
    static func invalidPart(_ message: String) -> Self {
        Self(status: 400, code: "InvalidPart", message: message)
    }
    static func conflict(_ message: String) -> Self {
        Self(status: 409, code: "OperationAborted", message: message)
    }
    static func accessDenied(_ message: String, details: [Detail] = []) -> Self {
        Self(status: 403, code: "AccessDenied", message: message, details: details)
    }
    static func preconditionFailed(_ condition: String) -> Self {
        Self(
            status: 412, code: "PreconditionFailed", message: "At least one of the preconditions does not hold.",
            details: [Detail(name: "Condition", text: condition)])
    }
    static func badDigest(_ field: String) -> Self {
        Self(status: 400, code: "BadDigest", message: "The body is not the one that \(field) was computed for.")
    }
    static func notImplemented(_ what: String) -> Self {
        Self(status: 501, code: "NotImplemented", message: "\(what) is not implemented.")
    }
    static let signatureDoesNotMatch = Self(
        status: 403, code: "SignatureDoesNotMatch",
        message: "The signature is not the one that belongs to this method, path, query and signed headers.")
    static let unauthorized = Self(status: 401, code: "Unauthorized", message: "X-API-Key is missing or wrong.")
    static let incompleteBody = Self(
        status: 400, code: "IncompleteBody", message: "The connection ended before Content-Length bytes arrived.")
    static let missingLength = Self(status: 411, code: "MissingContentLength", message: "Content-Length is required.")
    static let notFound = Self(status: 404, code: "NotFound", message: "Nothing answers at this method and path.")
}
