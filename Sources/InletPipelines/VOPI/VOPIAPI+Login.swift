package import InletCore
internal import InletTransfer

/// The login, and whether the server takes it.
extension VOPIAPI {
    /// Whether the server answers, takes our login and has credits left.
    /// - Returns: what it said, in a few words.
    /// - Throws: `.outOfCredits` when there are none.
    package func probe() async throws(DeliveryError) -> String {
        _ = try await jobs(limit: 1)
        let taken = "\(settings.url.redacted) answers and takes this login"
        // An API key has no account whose credits could be asked for.
        guard case .tokens = service.login else { return taken }
        guard let balance = try await balance() else { return taken }
        let credits = balance.credits.formatted
        guard balance.credits > 0 else {
            throw DeliveryError(
                .outage(after: VOPIVerdict.creditsPause), .outOfCredits,
                "the account at \(settings.url.redacted) has no credits left; buy some, and deliveries go on by themselves"
            )
        }
        return "\(taken); \(credits) credits left"
    }

    /// For a destination that may be idle: renews a login that is a day old. Otherwise does nothing.
    /// - Throws: `.credentials` when the login has ended.
    package func keepAlive() async throws(DeliveryError) {
        try await tokens?.keepAlive()
    }

    /// When the login was last renewed, and what to do where that fails; nil before the first time.
    package func renewal() async -> (at: WallTime, remedy: String)? {
        guard let tokens, let time = await tokens.lastRenewal() else { return nil }
        return (time, tokens.remedy)
    }

    /// An access token for the command line.
    /// - Parameter refused: one that the server no longer takes; another is given then.
    /// - Throws: `.badRequest` with an API key, which is no secret between the two.
    package func accessToken(after refused: Secret? = nil) async throws(DeliveryError) -> Secret {
        guard case .tokens(let give, _) = service.login else {
            throw DeliveryError(.giveUp, .badRequest, "the destination has an api_key, and so no access tokens")
        }
        return try await give(refused)
    }
}

extension Double {
    /// Without a fraction where there is none.
    fileprivate var formatted: String { Int64(exactly: self).map { String($0) } ?? String(self) }
}
