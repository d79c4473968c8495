import Synchronization

/// Which servers know nothing of `Expect: 100-continue` (RFC 9110, 10.1.1): who was asked in vain, a second long, is not asked
/// again. Shared by the threads of a client.
final class ServersAsked: Sendable {
    /// Servers name each other in URLs; who is forgotten costs one more second.
    private static let most = 256

    private let silent = Mutex<Set<String>>([])

    /// - Parameter server: as `Submission.destination`.
    func mayAsk(_ server: String) -> Bool { !silent.withLock { $0.contains(server) } }

    func saidNothing(_ server: String) {
        silent.withLock { silent in
            if silent.count >= Self.most { silent = [] }
            silent.insert(server)
        }
    }
}
