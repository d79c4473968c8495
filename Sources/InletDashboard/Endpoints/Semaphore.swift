internal import Hummingbird
internal import InletCore
internal import Synchronization

/// Counts answers that cost much for as long as they last: event streams, and lists of thousands. It waits for nothing: who
/// gets no permit is refused.
final class Semaphore: Sendable {
    static let streams = 16

    private let taken = Mutex(0)
    private let most: Int

    init(_ most: Int) { self.most = most }

    /// Given back when the last reference goes.
    final class Permit: Sendable {
        private let semaphore: Semaphore

        fileprivate init(_ semaphore: Semaphore) { self.semaphore = semaphore }

        deinit { semaphore.taken.withLock { $0 -= 1 } }
    }

    func permit() -> Permit? {
        let isFree = taken.withLock { taken in
            guard taken < most else { return false }
            taken += 1
            return true
        }
        return isFree ? Permit(self) : nil
    }

    /// For a large answer.
    func permitForAnswer() throws(APIFault) -> Permit {
        if let permit = permit() { return permit }
        throw APIFault(
            429, "busy", "as many large answers as there may be are under way; ask again, or for less",
            wait: .seconds(5))
    }
}

extension Response {
    /// The same answer; the permit is given back once it is written, or thrown away.
    func holding(_ permit: Semaphore.Permit) -> Response {
        var held = self
        held.body = ResponseBody(contentLength: body.contentLength) { [body] writer in
            defer { withExtendedLifetime(permit) {} }
            try await body.write(writer)
        }
        return held
    }
}
