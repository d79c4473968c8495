internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization

/// The login at a VOPI server: an access token for each request, renewed before it expires.
///
/// Every renewal ends the token that it was asked with. So one renewal runs at a time, in this process and on this machine;
/// it is not cut off when its caller is cancelled; and what it brings is on the disk before anybody uses it. An answer
/// that does not end the login for certain leaves everything as it is.
final class VOPITokens: Sendable {
    /// How long a renewal that failed for a passing reason is not tried again, where the server does not say.
    static let pause = Duration.seconds(10)

    /// `unsaved` is what the server gave and the disk would not take; `ended` has the refresh tokens that have ended, and how:
    /// they are not shown again to the server.
    private typealias Known = (
        pair: VOPITokenPair?, unsaved: VOPITokenPair?, ended: [Secret: DeliveryError],
        failure: (error: DeliveryError, at: WallTime, until: WallTime)?
    )

    /// Asked without a login: the refresh token is in the body.
    private let service: ServiceClient
    private let store: VOPITokenStore
    private let now: @Sendable () -> WallTime
    /// One task renews at a time; those that wait for it find the new pair, or why there is none.
    private let turn = KeyedMutex()
    private let state = Mutex<Known>((nil, nil, [:], nil))

    init(
        server: HTTPURL, client: HTTPClient, store: VOPITokenStore, now: @escaping @Sendable () -> WallTime = { .now }
    ) {
        service = ServiceClient(server, client)
        self.store = store
        self.now = now
    }

    /// A token for a request, renewed where 70 % of its life are over; another one than `rejected`, which the server refused.
    /// - Throws: `.credentials` when the login has ended, `.outage` when it cannot be renewed now.
    func access(after rejected: Secret? = nil) async throws(DeliveryError) -> Secret {
        if let pair, pair.accessToken != rejected, pair.isFresh(at: now()) { return pair.accessToken }
        return try await renewed(not: rejected).accessToken
    }

    /// Renews a login that is a day old, so that a week of idleness does not end it.
    /// - Throws: as `access`.
    func keepAlive() async throws(DeliveryError) {
        let known = if let pair { pair } else { try await store.pair() }
        if let known, known.server == server.redacted, !known.isIdle(at: now()) { return }
        _ = try await renewed(not: known?.accessToken)
    }

    /// When the login that is in use was last renewed; nil before the first time, and once another is configured.
    func lastRenewal() async -> WallTime? {
        var known = pair
        // For people: what cannot be read now is shown when it can.
        if known == nil { known = try? await store.pair() }
        guard let known, known.server == server.redacted else { return nil }
        // As above: without it the login counts as the configured one.
        let seed = try? await store.seed()
        return seed == nil || seed.map(VOPITokenStore.digest) == known.seed ? known.obtainedAt : nil
    }

    /// Has the configured token looked at again before the next request: the server refused us, and somebody may have
    /// logged in anew.
    func doubt() { state.withLock { $0.pair = nil } }

    private var server: HTTPURL { service.url }

    private var pair: VOPITokenPair? { state.withLock { $0.pair } }

    /// The pair to go on with: one that another process has got, or a new one.
    private func renewed(not rejected: Secret?) async throws(DeliveryError) -> VOPITokenPair {
        // Those who wait for another process wait together, not each after the other.
        let end = ContinuousClock.now + VOPITokenStore.patience
        return try await turn.alone("login") { () throws(DeliveryError) in
            // Whoever had the turn before may have renewed it.
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
            // Up to its end the old access token is better than none.
            guard case .outage = error.verdict, let stored, stored.accessToken != rejected, stored.isUsable(at: now())
            else { throw error }
            state.withLock { $0.pair = stored }
            return stored
        }
    }

    /// Shows the server what we have, the newest login first, until one is taken.
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
    /// - Throws: what passes; nothing is known of the token then.
    private func ask(_ token: Secret) async throws(DeliveryError) -> Result<VOPIValue, DeliveryError> {
        let body = JSONValue.object(["refreshToken": .string(token.reveal())]).bytes
        var request = service.request("POST", "api/v1/auth/refresh", json: body, patience: .seconds(30))
        request.outlivesCancellation = true
        request.secrets = [token]
        let response: HTTPResponse
        do throws(DeliveryError) {
            response = try await service.answer(to: request)
        } catch {
            // The agent is stopping, and the answer lost: the old token is shown once more at the next start.
            throw error.code == .cancelled ? error : failed(error)
        }
        let verdict = VOPIVerdict(response, at: .refresh)
        if verdict == .done { return .success(VOPIValue(response.jsonBody ?? .null)) }
        let error = verdict.error(
            response, "renewing the login at \(server.redacted)", hint: remedy, now: now())
        guard verdict == .credentials else { throw failed(error) }
        let (isEnd, time) = (VOPIVerdict.isEnd(VOPIErrorBody(response)), now())
        state.withLock { state in
            // Other refusals end when the server is put right, and the token is as good as before.
            if isEnd { state.ended[token] = error } else { state.failure = (error, time, time + Self.pause) }
        }
        return .failure(error)
    }

    /// Makes `pair` the one in use, once it is on the disk.
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

    /// Remembers a failure that passes, so that not every waiting task asks a server in trouble. Always an outage: it says
    /// nothing about any file. Tasks that waited for this renewal begin no other, even where the server allows one at once.
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

    /// What a person does where the login has ended.
    var remedy: String { "log in again, and put the new refresh token into \(store.seedPath.display)" }
}
