package import InletCore

/// Why a request got no usable answer. An answer with an error status is no `TransferError`: it is returned.
package struct TransferError: Error, Sendable, Equatable, CustomStringConvertible {
    package var code: ErrorCode
    /// A sentence for a person: the URL without its query, what happened, what to do. Holds no secrets.
    package var reason: String
    /// Whether the other side could not be reached at all, so that any other request to it would fare the same.
    package var isOutage: Bool

    package init(_ code: ErrorCode, _ reason: String, isOutage: Bool) {
        self.code = code
        self.reason = reason
        self.isOutage = isOutage
    }

    package var description: String { "\(reason) [\(code.rawValue)]" }
}
