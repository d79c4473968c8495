internal import Hummingbird
internal import InletCore
internal import Synchronization

/// Places for answers that cost much for as long as they last: event streams, and lists of thousands.
final class Seats: Sendable {
    static let streams = 16

    private let taken = Mutex(0)
    private let most: Int

    init(_ most: Int) { self.most = most }

    /// A place that is given back when the last reference goes.
    final class Seat: Sendable {
        private let seats: Seats

        fileprivate init(_ seats: Seats) { self.seats = seats }

        deinit { seats.taken.withLock { $0 -= 1 } }
    }

    func take() -> Seat? {
        let isFree = taken.withLock { taken in
            guard taken < most else { return false }
            taken += 1
            return true
        }
        return isFree ? Seat(self) : nil
    }
}

extension Endpoint {
    /// The same, but on a port only few at once where the answer is large: each is in memory until its reader has taken it.
    func seated(_ isLarge: @escaping @Sendable (APICall) -> Bool = { _ in true }) -> Endpoint {
        var endpoint = self
        endpoint.handle = { [handle] call, context in
            guard let seats = context.largeSeats, isLarge(call) else { return try await handle(call, context) }
            guard let seat = seats.take() else {
                throw APIFault(
                    429, "busy", "as many large answers as there may be are under way; ask again, or for less",
                    wait: .seconds(5))
            }
            return try await handle(call, context).holding(seat)
        }
        return endpoint
    }

    /// Rows of a small answer.
    static let smallList = 1000
}

extension Response {
    /// The same answer; the seat is given back once it is written, or thrown away.
    fileprivate func holding(_ seat: Seats.Seat) -> Response {
        var held = self
        held.body = ResponseBody(contentLength: body.contentLength) { [body] writer in
            defer { withExtendedLifetime(seat) {} }
            try await body.write(writer)
        }
        return held
    }
}
