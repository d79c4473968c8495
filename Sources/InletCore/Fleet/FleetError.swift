/// Why a call to the fleet's PostgreSQL failed.
package struct FleetError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Those of the schema have its SQLSTATEs as raw values.
    package enum Code: String, Sendable, CaseIterable {
        /// The schema is newer or older than this agent needs.
        case schema = "IN001"
        /// The agent is not known, or its token is wrong.
        case unknownAgent = "IN002"
        /// The session is over: say hello.
        case sessionOver = "IN003"
        /// Another process of this agent is alive.
        case isAlive = "IN004"
        /// The journal went back, or this identity is used twice.
        case usedTwice = "IN005"
        /// The epoch is new: report first.
        case reportFirst = "IN006"
        /// The database went back: say hello with the highest mark.
        case wentBack = "IN007"
        /// Nothing is granted now.
        case nothingGranted = "IN008"
        /// Another has it: the fence is past.
        case fenced = "IN009"
        /// The agent is draining, retired, or no member.
        case notMember = "IN010"
        case argument = "IN011"
        /// PostgreSQL cannot be reached, does not answer in time, or cannot write.
        case away
        /// The server's certificate is not vouched for, or the address does not ask for that.
        case untrusted
        /// The role or its password is refused.
        case refused
        /// libpq cannot be loaded.
        case library
        /// This agent's journal does not keep what the fleet needs, or does not answer.
        case journal
        /// Anything else: a fault of Inlet or of the schema.
        case fault
    }

    package var code: Code
    /// One line without secrets, of at most 300 characters.
    package var message: String
    /// The server's DETAIL.
    package var detail: String?
    /// The function of the schema that was called.
    package var function: String?

    package init(_ code: Code, _ message: String, detail: String? = nil, function: String? = nil) {
        (self.code, self.detail, self.function) = (code, detail, function)
        self.message = String(message.prefix(300))
    }

    package var isAway: Bool { code == .away }

    package var description: String {
        code.rawValue.hasPrefix("IN") ? "\(message) (\(code.rawValue))" : message
    }
}
