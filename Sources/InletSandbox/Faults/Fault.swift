import NIOCore
import NIOPosix

/// A sandbox's operations, named for counters and faults.
package protocol SandboxOperation: RawRepresentable, CaseIterable, Hashable, Sendable where RawValue == String {}

/// One failure: its kind, the operation, and how often.
package struct OperationFault<Operation: SandboxOperation>: Sendable {
    package var action: FaultAction
    /// nil = any.
    package var operation: Operation?
    /// Only at the part of this number; nil = at any part.
    package var part: Int?
    /// How many times it happens; nil = until cleared.
    package var times: Int?
    /// The probability, by the plan's seed.
    package var probability: Double

    package init(
        _ action: FaultAction, at operation: Operation? = nil, part: Int? = nil, times: Int? = 1,
        probability: Double = 1
    ) {
        self.action = action
        self.operation = operation
        self.part = part
        self.times = times
        self.probability = probability
    }
}

/// The kind of failure. Each sandbox uses those that have a meaning in its protocol, and ignores the others.
package enum FaultAction: Sendable, Hashable {
    package enum WrongETag: Sendable, Hashable {
        /// Another value each time, as for a corrupted body.
        case random
        /// The same value for the same bytes, as of a store whose ETags are not MD5 (SSE-KMS). `complete` accepts
        /// either, because the store remembers the ETag that it gave.
        case constant
    }
    package enum PartURLs: Sendable, Hashable {
        /// The last one is left out.
        case fewer
        /// An extra URL is added.
        case more
        /// Numbers count from 0.
        case renumbered
        /// All have this scheme and host instead, e.g. `http://storage.example` or `https://203.0.113.7`.
        case origin(String)
    }

    /// Reads and discards the body, then answers this status, with `Retry-After: retryAfter` (seconds).
    case status(Int, retryAfter: Int? = nil)
    /// Reads and discards the body, then answers this.
    case reply(FaultReply)
    /// Answers before a byte of the body is read, and closes the connection, as at a proxy's limit.
    case earlyReply(FaultReply)
    /// Like `reply`; `Echo.mark` in its body is replaced by the request, credentials included.
    case echo(FaultReply)
    /// Does the work, then answers this.
    case replyAfterWork(FaultReply)
    /// Closes the socket after this many bytes of the request body, or at its end.
    case reset(afterBytes: Int)
    /// Reads the request and never answers.
    case stall
    /// A good head, then bytes without end, as fast as possible.
    case endlessAnswer
    /// 200 and random bytes labelled as JSON.
    case garbage
    /// 200 and a web page, as from a captive portal or a proxy.
    case html
    /// Stores the part; the answer has no ETag.
    case missingETag
    /// Stores the part; the answer's ETag is not its MD5.
    case wrongETag(WrongETag)
    /// 307 to this address.
    case redirect(to: String)
    /// `create` answers with a wrong list of part URLs.
    case partURLs(PartURLs)
    /// The URLs in the answer have a lifetime of 0 seconds: 403 at their first use.
    case expiredURLs
    /// Does the work, then closes the socket instead of answering.
    case loseAnswer
    /// Does the work, and never answers.
    case withholdAnswer
    /// Does the work, then closes the socket after this many bytes of the answer's body; its head is whole.
    case truncateAnswer(afterBytes: Int)
    /// Does the work. The answer's Content-Length is wrong by this many bytes, and the connection ends after it.
    case wrongLength(by: Int)
    /// Does the work, then changes this byte of the answer's body.
    case damageAnswer(at: Int)
    /// Another client changes the object just before. A call with a version gets 409, and the object a newer version.
    case conflict
    /// Reads the request body at this many bytes a second.
    case slowRead(bytesPerSecond: Int)
    /// Handles the request after this time.
    case delay(Duration)
    /// Handles the request once the gate is open.
    case hold(RequestGate)
}

/// Holds requests until a test opens it.
package final class RequestGate: Sendable, Hashable {
    private let opened = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Void.self)

    package init() {}
    deinit { open() }

    package func open() { opened.succeed() }

    // Nothing fails it.
    func wait() async { try? await opened.futureResult.get() }

    package static func == (one: RequestGate, other: RequestGate) -> Bool { one === other }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The faults from the start on.
package struct FaultPlan<Operation: SandboxOperation>: Sendable {
    package var faults: [OperationFault<Operation>]
    /// Decides everything random: two runs with one seed and the same order of requests are the same.
    package var seed: UInt64

    package init(_ faults: [OperationFault<Operation>] = [], seed: UInt64 = 1) {
        self.faults = faults
        self.seed = seed
    }

    package static var none: FaultPlan { FaultPlan() }
}
