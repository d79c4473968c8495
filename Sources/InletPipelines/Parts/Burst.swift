package import InletCore
package import InletTransfer
internal import Synchronization

/// A pipeline that sends many small files together: each by one request, all of them from one thread. A file that does
/// not arrive at once continues as an attempt of its own, from the answer that it got: `deliver` alone knows errors.
package protocol BurstPipeline: Pipeline {
    /// The largest file that it may send so now; nil where it sends none so.
    var burstLimit: Int? { get }

    /// How many files may be on their way at once now.
    var burstConnections: Int { get }

    /// Prepares the files' requests; `Burst.start` sends them.
    ///
    /// - Parameter ended: gets each file's end once, with its index, several where they come together. Called on
    ///     another thread: it must return within milliseconds.
    /// - Throws: when none can be sent so.
    func burst(
        _ files: [BurstFile], ended: @escaping @Sendable ([(index: Int, end: BurstEnd)]) -> Void
    ) throws(DeliveryError) -> Burst
}

/// Prepared requests of many files.
package struct Burst: Sendable {
    /// Sends them; once.
    package let start: @Sendable () -> Void
    /// Ends the request of the file with this index.
    package let cancel: @Sendable (Int) -> Void

    package init(start: @escaping @Sendable () -> Void, cancel: @escaping @Sendable (Int) -> Void) {
        (self.start, self.cancel) = (start, cancel)
    }
}

/// A file of a burst; its content is the admitted one.
package struct BurstFile: Sendable {
    package let order: DeliveryOrder
    package let content: [UInt8]

    package init(_ order: DeliveryOrder, content: [UInt8]) { (self.order, self.content) = (order, content) }
}

package enum BurstEnd: Sendable {
    case delivered(Proof)
    /// The delivery goes on as an attempt.
    case continues(FirstAnswer)
}

/// The answer to a request that went out in a burst, or why there is none. The attempt that continues takes it instead
/// of sending the request. A request that we ended ourselves has none: the attempt decides whether to send it.
package final class FirstAnswer: Sendable {
    private let result: Mutex<Result<HTTPResponse, DeliveryError>?>
    private let address: String
    /// Whether anything of the file may have arrived.
    package let mayHaveArrived: Bool

    /// - Parameter address: where the request went.
    package init(_ result: Result<HTTPResponse, DeliveryError>, from address: String, mayHaveArrived: Bool) {
        let isEnded = if case .failure(let error) = result { error.verdict == .cancelled } else { false }
        self.result = Mutex(isEnded ? nil : result)
        (self.address, self.mayHaveArrived) = (address, mayHaveArrived)
    }

    /// nil when it has been taken, and for another address: the destination may have been replaced since.
    func take(of address: String) -> Result<HTTPResponse, DeliveryError>? {
        if address != self.address { return nil }
        return result.withLock { result in
            defer { result = nil }
            return result
        }
    }
}
