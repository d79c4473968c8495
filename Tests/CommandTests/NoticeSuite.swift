import Foundation
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

/// What tests of notices share.
protocol NoticeSuite {}

extension NoticeSuite {
    /// A place whose agent tells one receiver, called ops.
    func place(_ notify: String, _ change: (inout ConfigText) -> Void = { _ in }) throws -> Place {
        var config = ConfigText()
        change(&config)
        config.top.append("notify:\n  - { name: ops, \(notify) }")
        return try Place(config)
    }

    /// What a notice says.
    func object(_ request: ReceivedRequest) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any] ?? [:]
    }
}
