internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization

/// The login at a VOPI server: an access token for each request, renewed before it expires.
///
/// Every renewal invalidates the token that it used. So one renewal runs at a time on this machine, and cancelling its
/// caller does not interrupt it. Its result is on disk before anybody uses it. Only an answer that certainly ends the
/// login changes anything.
final class VOPITokens: Sendable {
    /// How long to wait after a transient failure of a renewal, where the server does not say.
    static let pause = Duration.seconds(10)

    /// `unsaved` is the server's pair that the disk refused; `ended` holds the ended refresh tokens with the reasons:
    /// the server never gets them again.
    private typealias Known = (
        pair: VOPITokenPair?, unsaved: VOPITokenPair?, ended: [Secret: DeliveryError],
        failure: (error: DeliveryError, at: WallTime, until: WallTime)?
    )

    /// Sent without a login: the refresh token is in the body.
    private let service: ServiceClient
    private let store: VOPITokenStore
    private let now: @Sendable () -> WallTime
    /// One task renews at a time; waiting tasks get the new pair, or the reason for its absence.
    private let turn = KeyedMutex()
    private let state = Mutex<Known>((nil, nil, [:], nil))

    init(
        server: HTTPURL, client: HTTPClient, store: VOPITokenStore, now: @escaping @Sendable () -> WallTime = { .now }
    ) {
        service = ServiceClient(server, client)
        self.store = store
        self.now = now
    }

    /// A token for a request, renewed after 70 % of its life; never `rejected`, which the server refused.
    /// - Throws: `.credentials` when the login has ended, `.outage` when it cannot be renewed now.
    func access(after rejected: Secret? = nil) async throws(DeliveryError) -> Secret {
        if let pair, pair.accessToken != rejected, pair.isFresh(at: now()) { return pair.accessToken }
        return try await renewed(not: rejected).accessToken
    }

    /// Renews a login that is a day old, so that an idle week does not end it.
    /// - Throws: as `access`.
    func keepAlive() async throws(DeliveryError) {
        let known = if let pair { pair } else { try await store.pair() }
        if let known, known.server == server.redacted, !known.isIdle(at: now()) { return }
        _ = try await renewed(not: known?.accessToken)
    }

    /// When the current login was last renewed; nil before the first renewal, and after another login is configured.
    func lastRenewal() async -> WallTime? {
        var known = pair
        // For display only: an unreadable file is shown once it is readable.
        if known == nil { known = try? await store.pair() }
        guard let known, known.server == server.redacted else { return nil }
        // As above: without it the login counts as the configured one.
        let seed = try? await store.seed()
        return seed == nil || seed.map(VOPITokenStore.digest) == known.seed ? known.obtainedAt : nil
    }

    /// Re-reads the configured token before the next request: the server refused ours, and somebody may have logged in
    /// anew.
    func doubt() { state.withLock { $0.pair = nil } }

    private var server: HTTPURL { service.url }

    private var pair: VOPITokenPair? { state.withLock { $0.pair } }

    /// The pair to continue with: another process's, or a new one.
    private func renewed(not rejected: Secret?) async throws(DeliveryError) -> VOPITokenPair {
        // Tasks wait for another process together, not one after the other.
        let end = ContinuousClock.now + VOPITokenStore.patience
        return try await turn.alone("login") { () throws(DeliveryError) in
            // The previous task may have renewed it.
            if let pair, pair.accessToken != rejected, pair.isFresh(at: now()) { return pair }
            return try await renewedAlone(not: rejected, by: end)
        }
    }

    private func renewedAlone(
        not rejected: Secret?, by end: ContinuousClock.Instant
    ) async throws(DeliveryError) -> VOPITokenPair {
        let lock = try await store.lock(by: end)
        defer { withExtendedLifetime(lock) {} }
        if let unsaved = state.withLock({ $0.unsaved }) { return try await adopt(unsaved) }
        var stored = try await store.pair()
        if stored?.server != server.redacted { stored = nil }
        let seed = try await store.seed()
        let isSameLogin = seed == nil || seed.map(VOPITokenStore.digest) == stored?.seed
        if let stored, isSameLogin, stored.accessToken != rejected, stored.isFresh(at: now()) {
            state.withLock { $0.pair = stored }
            return stored
        }
        do throws(DeliveryError) {
            return try await exchange(isSameLogin ? nil : seed, stored)
        } catch {
            // Until it expires the old access token is better than none.
            guard case .outage = error.verdict, let stored, stored.accessToken != rejected, stored.isUsable(at: now())
            else { throw error }
            state.withLock { $0.pair = stored }
            return stored
        }
    }

    /// Tries our logins, the newest first, until the server accepts one.
    private func exchange(_ seed: Secret?, _ stored: VOPITokenPair?) async throws(DeliveryError) -> VOPITokenPair {
        if let failure = state.withLock({ $0.failure }), now() < failure.until, now() >= failure.at {
            throw failure.error
        }
        var ended: DeliveryError?
        for (token, digest) in [(seed, seed.map(VOPITokenStore.digest)), (stored?.refreshToken, stored?.seed)] {
            guard let token else { continue }
            if let known = state.withLock({ $0.ended[token] }) {
                ended = ended ?? known
                continue
            }
            let answer = try await ask(token)
            guard case .success(let value) = answer else {
                if case .failure(let error) = answer { ended = ended ?? error }
                continue
            }
            let pair = VOPITokenPair(value, old: token, server: server.redacted, seed: digest, now: now())
            guard let pair else {
                let reason = "renewing the login at \(server.redacted): the answer has no access token"
                throw failed(DeliveryError(.outage(after: nil), .badAnswer, reason))
            }
            return try await adopt(pair)
        }
        let nothing = "there is no login at \(server.redacted): \(store.seedPath.display) holds none"
        throw ended ?? DeliveryError(.credentials, .unauthorized, nothing)
    }

    /// One renewal. - Returns: why the token has ended, if it has.
    /// - Throws: transient errors, after which the token's state is unknown.
    private func ask(_ token: Secret) async throws(DeliveryError) -> Result<VOPIValue, DeliveryError> {
        let body = JSONValue.object(["refreshToken": .string(token.reveal())]).bytes
        var request = service.request("POST", "api/v1/auth/refresh", json: body, patience: .seconds(30))
        request.outlivesCancellation = true
        request.secrets = [token]
        let response: HTTPResponse
        do throws(DeliveryError) {
            response = try await service.answer(to: request)
        } catch {
            // The agent is stopping and the answer is lost: the next start tries the old token once more.
            throw error.code == .cancelled ? error : failed(error)
        }
        let verdict = VOPIVerdict(response, at: .refresh)
        if verdict == .done { return .success(VOPIValue(response.jsonBody ?? .null)) }
        let error = verdict.error(
            response, "renewing the login at \(server.redacted)", hint: remedy, now: now())
        guard verdict == .credentials else { throw failed(error) }
        let (isEnd, time) = (VOPIVerdict.isEnd(VOPIErrorBody(response)), now())
        state.withLock { state in
            // Other refusals end once the server is repaired, and the token stays valid.
            if isEnd { state.ended[token] = error } else { state.failure = (error, time, time + Self.pause) }
        }
        return .failure(error)
    }

    /// Puts `pair` into use once it is on disk.
    private func adopt(_ pair: VOPITokenPair) async throws(DeliveryError) -> VOPITokenPair {
        state.withLock { $0.unsaved = pair }
        try await store.keep(pair)
        state.withLock { state in
            state.unsaved = nil
            state.failure = nil
            state.pair = pair
        }
        return pair
    }

    /// Remembers a transient failure, so that waiting tasks do not all ask a failing server. Always an outage: it says
    /// nothing about any file. Tasks that waited for this renewal start no other, even where the server allows one at
    /// once.
    private func failed(_ error: DeliveryError) -> DeliveryError {
        var after: Duration?
        switch error.verdict {
        case .outage(let asked), .retry(let asked): after = asked
        default: break
        }
        let result = DeliveryError(.outage(after: after), error.code, error.reason)
        let time = now()
        state.withLock { $0.failure = (result, time, time + max(after ?? Self.pause, .seconds(1))) }
        return result
    }

    /// The remedy for an ended login.
    var remedy: String { "log in again, and put the new refresh token into \(store.seedPath.display)" }
}
