/// Whether one destination is worth trying: when it goes down its deliveries wait and lose no attempts, until a probe or
/// a delivery proves that it is back.
///
/// The caller feeds it every outcome and obeys the action; time is a parameter.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case up
        /// Unreachable or failing since then; the next probe is due at `probeAt`.
        case down(since: WallTime, probeAt: WallTime)
        /// Refuses our credentials; the probe also reads changed secrets.
        case credentialsRefused(since: WallTime, probeAt: WallTime)
    }

    package enum Event: Sendable, Equatable {
        case delivered
        /// A 5xx other than 502 to 504 for this file: its own fault, or the server's. Two files in a row decide.
        case serverFault(file: Int64)
        /// Refused, unknown name, time-out, 502 to 504; `after` is the server's Retry-After.
        case outage(after: Duration?)
        case credentials
        case probeSucceeded
        case probeFailed(credentials: Bool)
        /// The configuration's secrets have new values.
        case secretsChanged
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Claim nothing for the destination; the next probe is due then.
        case pause(until: WallTime)
        case resume
    }

    /// Waits before the first, second… probe of an outage; the last one stays.
    private static let probeDelays: [Duration] = [1, 5, 15, 30, 60].map { .seconds($0) }
    private static let credentialsDelay = Duration.seconds(60)
    private static let longestAsked = Duration.seconds(3600)

    package private(set) var state = State.up
    /// Probes since the last delivery. A probe that succeeds does not set it back: a server whose probe answers but
    /// whose deliveries fail would otherwise be tried every second.
    private var probes = 0
    private var lastFaultyFile: Int64?

    package init() {}

    package var isUp: Bool { state == .up }

    /// Whether a probe should be made now. A clock that was set back makes one due rather than far away.
    package func probeIsDue(at time: WallTime) -> Bool {
        switch state {
        case .up: false
        case .down(let since, let probeAt), .credentialsRefused(let since, let probeAt): time >= probeAt || time < since
        }
    }

    /// A person wants to know now whether it is back. - Returns: whether a probe is due then that was not.
    package mutating func probeNow(at time: WallTime) -> Bool {
        if probeIsDue(at: time) { return false }
        switch state {
        case .up: return false
        case .down(let since, _): state = .down(since: since, probeAt: time)
        case .credentialsRefused(let since, _): state = .credentialsRefused(since: since, probeAt: time)
        }
        return true
    }

    package mutating func event(_ event: Event, at time: WallTime) -> Action {
        switch event {
        case .delivered: delivered()
        case .serverFault(let file): serverFault(file, time)
        case .outage(let after): outage(after, time)
        case .credentials: refuse(time)
        case .probeSucceeded: resume()
        case .probeFailed(let credentials): probeFailed(credentials, time)
        case .secretsChanged: if case .credentialsRefused = state { resume() } else { .none }
        }
    }

    /// A delivery that was under way when credentials were refused says nothing about new requests.
    private mutating func delivered() -> Action {
        lastFaultyFile = nil
        if case .credentialsRefused = state { return .none }
        probes = 0
        return resume()
    }

    private mutating func resume() -> Action {
        guard !isUp else { return .none }
        state = .up
        lastFaultyFile = nil
        return .resume
    }

    private mutating func serverFault(_ file: Int64, _ time: WallTime) -> Action {
        guard isUp else { return .none }
        guard let last = lastFaultyFile, last != file else {
            lastFaultyFile = file
            return .none
        }
        return goDown(since: time, asked: nil, time)
    }

    private mutating func outage(_ asked: Duration?, _ time: WallTime) -> Action {
        switch state {
        case .up: return goDown(since: time, asked: asked, time)
        case .credentialsRefused: return .none
        case .down(let since, let probeAt):
            // Deliveries under way when it went down report one by one; only a Retry-After changes anything.
            guard let asked else { return .none }
            let later = time + min(max(asked, Self.probeDelays[0]), Self.longestAsked)
            guard later > probeAt else { return .none }
            state = .down(since: since, probeAt: later)
            return .pause(until: later)
        }
    }

    private mutating func refuse(_ time: WallTime) -> Action {
        if case .credentialsRefused = state { return .none }
        return refuse(since: time, time)
    }

    private mutating func probeFailed(_ credentials: Bool, _ time: WallTime) -> Action {
        let since =
            switch state {
            case .up: time
            case .down(let since, _), .credentialsRefused(let since, _): since
            }
        return credentials ? refuse(since: since, time) : goDown(since: since, asked: nil, time)
    }

    private mutating func goDown(since: WallTime, asked: Duration?, _ time: WallTime) -> Action {
        let delay = Self.probeDelays[min(probes, Self.probeDelays.count - 1)]
        probes += 1
        let probeAt = time + max(delay, min(asked ?? .zero, Self.longestAsked))
        state = .down(since: min(since, time), probeAt: probeAt)
        return .pause(until: probeAt)
    }

    private mutating func refuse(since: WallTime, _ time: WallTime) -> Action {
        let probeAt = time + Self.credentialsDelay
        state = .credentialsRefused(since: min(since, time), probeAt: probeAt)
        return .pause(until: probeAt)
    }
}
