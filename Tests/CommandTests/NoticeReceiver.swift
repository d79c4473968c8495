import InletTestSupport
import Synchronization

/// A receiver that takes notices as long as it is open, and otherwise says that it has no time.
final class NoticeReceiver: Sendable {
    private let taken = Mutex<[ReceivedRequest]>([])
    private let refused = Mutex<[ReceivedRequest]>([])
    private let isOpen = Mutex(true)

    var notices: [ReceivedRequest] { taken.withLock(\.self) }
    var turnedAway: [ReceivedRequest] { refused.withLock(\.self) }
    func open(_ open: Bool) { isOpen.withLock { $0 = open } }

    func serve(_ connection: ServerConnection) throws {
        while true {
            let request = try connection.readRequest()
            if isOpen.withLock(\.self) {
                taken.withLock { $0.append(request) }
                try connection.answer("204 No Content")
            } else {
                refused.withLock { $0.append(request) }
                try connection.answer("503 Busy")
            }
        }
    }
}
