internal import InletLinux
internal import Synchronization

/// Looks at files and folders for people, on threads of its own: a folder that does not answer makes no order wait, and
/// no other look for long.
final class FileViewer: Sendable {
    /// Looks that go on at the same time, also those that nobody waits for any more. Beyond them there is no answer.
    private static let most = 2

    private let pool = BlockingPool(name: "look", threads: FileViewer.most)
    private let seats = Seats()

    private final class Seats: Sendable {
        let taken = Mutex(0)
    }

    /// Given back with its last reference: when the look has ended.
    private final class Seat: Sendable {
        let isFree: Bool
        private let seats: Seats

        init(_ seats: Seats) {
            self.seats = seats
            isFree = seats.taken.withLock { taken in
                taken += 1
                return taken <= FileViewer.most
            }
        }

        deinit { seats.taken.withLock { $0 -= 1 } }
    }

    /// - Returns: nil when too many looks go on, or this one takes longer than `patience`. It then ends by itself, and
    ///   its result is dropped.
    func look<Value: Sendable>(within patience: Duration, _ body: @escaping @Sendable () -> Value) async -> Value? {
        let seat = Seat(seats)
        guard seat.isFree else { return nil }
        return await pool.run { () -> Value? in
            // Without a thread there is no look.
            try? LoopThread.result(name: "look", within: patience) { withExtendedLifetime(seat) { body() } }
        }
    }
}
