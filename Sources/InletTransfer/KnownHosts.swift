import Synchronization

/// Where hosts that are names have answered from, in this process: an API on the local network under a name may name its own
/// network's addresses, a public one may not.
final class KnownHosts: Sendable {
    static let shared = KnownHosts()

    /// More than anybody configures. The others' names are servers' choice, and must not fill the memory.
    private static let most = 1000

    private let scopes = Mutex<[String: HostScopes]>([:])

    /// The host's own scope where its text tells, otherwise where it has answered from; `anywhere` before that.
    func scopes(of host: String) -> HostScopes {
        guard HostScope.isUnknown(host) else { return HostScopes(HostScope(host)) }
        return scopes.withLock { $0[host] } ?? HostScopes(.anywhere)
    }

    /// Whether asking would tell nothing new.
    func knows(_ host: String) -> Bool { !HostScope.isUnknown(host) || scopes.withLock { $0[host] != nil } }

    /// `host` has answered from an address of this scope.
    ///
    /// - Parameter isProven: whether TLS has shown that it was the host. Otherwise only the first address counts: a name that
    ///   leads to ours later proves nothing by what answers there.
    func note(_ host: String, _ scope: HostScope, isProven: Bool) {
        guard HostScope.isUnknown(host) else { return }
        scopes.withLock { scopes in
            if let known = scopes[host] {
                if isProven { scopes[host] = known.union(HostScopes(scope)) }
            } else if scopes.count < Self.most {
                scopes[host] = HostScopes(scope)
            }
        }
    }
}
