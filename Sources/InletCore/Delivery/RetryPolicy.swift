/// When to retry a failed attempt: a route's `retry:`.
package struct RetryPolicy: Sendable, Hashable {
    /// The total number of attempts, including the first.
    package var attempts: Int
    /// The longest wait after the first attempt; doubles with each further one.
    package var backoff: Duration
    package var maxBackoff: Duration
    /// How long a delivery may take while its destination is up; nil for no limit.
    package var expire: Duration?

    package init(
        attempts: Int = RouteKeys.all.retryAttempts.standard, backoff: Duration = RouteKeys.all.retryBackoff.standard,
        maxBackoff: Duration = RouteKeys.all.retryMaxBackoff.standard,
        expire: Duration? = RouteKeys.all.retryExpire.standard
    ) {
        self.attempts = attempts
        self.backoff = backoff
        self.maxBackoff = maxBackoff
        self.expire = expire
    }

    private static let shortest: Int64 = 100
    private static let longestAsked: Int64 = 3_600_000

    /// The wait after attempt number `attempt` (from 1): random up to min(`maxBackoff`, `backoff` × 2^(attempt − 1)),
    /// "full jitter". At least 100 ms, and at least the server's `asked` (Retry-After), up to one hour.
    package func delay(
        afterAttempt attempt: Int, asked: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let doublings = Int64(1) << Int64(min(max(attempt - 1, 0), 40))
        let (product, overflow) = max(0, backoff.milliseconds).multipliedReportingOverflow(by: doublings)
        let ceiling = min(overflow ? .max : product, max(0, maxBackoff.milliseconds))
        let asked = min(asked?.milliseconds ?? 0, Self.longestAsked)
        return .milliseconds(max(Int64.random(in: 0...ceiling, using: &generator), asked, Self.shortest))
    }
}

/// In milliseconds, so that people can read the journal.
extension RetryPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case attempts
        case backoff = "backoff_ms"
        case maxBackoff = "max_backoff_ms"
        case expire = "expire_ms"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            attempts: try values.decode(Int.self, forKey: .attempts),
            backoff: .milliseconds(try values.decode(Int64.self, forKey: .backoff)),
            maxBackoff: .milliseconds(try values.decode(Int64.self, forKey: .maxBackoff)),
            expire: try values.decodeIfPresent(Int64.self, forKey: .expire).map { .milliseconds($0) })
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(attempts, forKey: .attempts)
        try values.encode(backoff.milliseconds, forKey: .backoff)
        try values.encode(maxBackoff.milliseconds, forKey: .maxBackoff)
        try values.encodeIfPresent(expire?.milliseconds, forKey: .expire)
    }
}

/// How often to probe whether a destination is back.
package struct ProbePace: Sendable, Hashable {
    /// From a failure to the first probe: enough for a restart.
    package var first: Duration
    /// The shortest time between the starts of two probes, across all outages.
    package var interval: Duration

    package init(first: Duration = .seconds(5), interval: Duration = .seconds(60)) {
        self.first = first
        self.interval = interval
    }
}

// Deliveries during which the process crashed: they may be the cause.
extension RetryPolicy {
    /// After this many crashes without any bytes arriving in between, the delivery is left alone. The number is high
    /// because an innocent delivery may be under way each time. With `kill -9` once a second, one short delivery in a few
    /// thousand is hit ten times in a row.
    package static let mostCrashes = 20

    /// The wait of delivery `id` after crash number `crashes`: none at first; from the third on up to 1, 2, 4 … 60 s.
    /// Deliveries that were under way together return at different times, so that an innocent one is delivered before
    /// the cause ends the process again.
    package static func delay(afterCrashes crashes: Int, of id: Int64) -> Duration {
        guard crashes >= 3 else { return .zero }
        let span = min(60_000, Int64(1000) << Int64(min(crashes - 3, 10)))
        var mixed = UInt64(bitPattern: id) &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(crashes) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 29)) &* 0x94D0_49BB_1331_11EB
        return .milliseconds(span / 2 + Int64((mixed >> 32) % UInt64(span / 2 + 1)))
    }
}
