import NIOCore
import NIOPosix

/// What a sandbox may be asked, as its counters and faults name it.
package protocol SandboxOperation: RawRepresentable, CaseIterable, Hashable, Sendable where RawValue == String {}

/// One thing that shall go wrong: what, at which operation, how often.
package struct OperationFault<Operation: SandboxOperation>: Sendable {
    package var action: FaultAction
    /// nil = at any.
    package var operation: Operation?
    /// Only at the part of this number; nil = at any part.
    package var part: Int?
    /// How many times it happens; nil = until cleared.
    package var times: Int?
    /// How likely it happens where it could, by the plan's seed.
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

/// How it goes wrong. Each sandbox knows those that have a meaning in its protocol, and passes over the others.
package enum FaultAction: Sendable, Hashable {
    package enum WrongETag: Sendable, Hashable {
        /// Another value each time: what a corrupted body looks like.
        case random
        /// The same value for the same bytes: what a store looks like whose ETags are not MD5 (SSE-KMS).
        /// `complete` accepts either, because the store remembers what it told.
        case constant
    }
    package enum PartURLs: Sendable, Hashable {
        /// The last one is left out.
        case fewer
        /// One that was not asked for is added.
        case more
        /// Numbers count from 0.
        case renumbered
        /// All have this scheme and host instead, e.g. `http://storage.example` or `https://203.0.113.7`.
        case origin(String)
    }

    /// The body is read and thrown away, then this status is answered, with `Retry-After: retryAfter` (seconds).
    case status(Int, retryAfter: Int? = nil)
    /// The body is read and thrown away, then this is answered.
    case reply(FaultReply)
    /// This is answered before a byte of the body is read, and the connection is closed: what a proxy's limit does.
    case earlyReply(FaultReply)
    /// As `reply`; `Echo.mark` in its body is replaced by the request, credentials and all.
    case echo(FaultReply)
    /// The work is done, then this is answered.
    case replyAfterWork(FaultReply)
    /// The socket is closed once this many bytes of the request body were read, or at its end.
    case reset(afterBytes: Int)
    /// The request is read and never answered.
    case stall
    /// A good head, then bytes as fast as they go, without end.
    case endlessAnswer
    /// 200 and random bytes that call themselves JSON.
    case garbage
    /// 200 and a web page, as a captive portal or a proxy answers.
    case html
    /// The part is stored, the answer has no ETag.
    case missingETag
    /// The part is stored, the answer has an ETag that is not its MD5.
    case wrongETag(WrongETag)
    /// 307 to this address.
    case redirect(to: String)
    /// `create` answers a list of part URLs that is not the one asked for.
    case partURLs(PartURLs)
    /// The URLs in the answer have a lifetime of 0 seconds: 403 at their first use.
    case expiredURLs
    /// The work is done, then the socket is closed instead of an answer.
    case loseAnswer
    /// The work is done, and the answer never comes.
    case withholdAnswer
    /// The work is done, then the socket is closed after so many bytes of the answer's body; its head is whole.
    case truncateAnswer(afterBytes: Int)
    /// The work is done, then the answer's Content-Length is wrong by so many bytes, and the connection ends after it.
    case wrongLength(by: Int)
    /// The work is done, and this byte of the answer's body is another than it was.
    case damageAnswer(at: Int)
    /// Somebody else changes the object just before: a call with a version gets 409, and the object a newer version.
    case conflict
    /// The request body is read at this many bytes a second.
    case slowRead(bytesPerSecond: Int)
    /// The request is handled after this time.
    case delay(Duration)
    /// The request is handled once the gate is open.
    case hold(RequestGate)
}

/// Holds requests until somebody opens it.
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

/// What goes wrong from the start on.
package struct FaultPlan<Operation: SandboxOperation>: Sendable {
    package var faults: [OperationFault<Operation>]
    /// Decides everything that is random: two runs with one seed and the same order of requests are the same.
    package var seed: UInt64

    package init(_ faults: [OperationFault<Operation>] = [], seed: UInt64 = 1) {
        self.faults = faults
        self.seed = seed
    }

    package static var none: FaultPlan { FaultPlan() }
}
