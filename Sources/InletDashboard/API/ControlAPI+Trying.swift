internal import InletAgent
internal import InletCore
internal import InletJournal
internal import InletLinux

/// When what a person wants to be tried will be.
extension LocalControl {
    /// What keeps all of a job's deliveries that wait; empty when any may go now.
    func obstacles(_ job: Int64, at now: WallTime) async throws -> [String] {
        guard let job = try await agent.job(job), job.file.state == .pending else { return [] }
        let away = awayDestinations()
        let ready = job.deliveries.filter { $0.state == .ready }
        let reasons = ready.map { delivery -> String? in
            if let why = away[delivery.destination] { return why }
            guard delivery.waits == 0, delivery.closes == nil, delivery.afterID == nil,
                let window = job.file.policy.window, window.concerns(size: job.file.identity.size)
            else { return nil }
            return window.opening(at: now).map { Self.closed(window, until: $0) }
        }
        let known = Set(reasons.compactMap(\.self)).sorted()
        return reasons.contains(nil) ? [] : known
    }

    /// What may keep some of many jobs.
    ///
    /// - Parameter destination: the only one that is meant; nil = all.
    func obstacles(to destination: String?, at now: WallTime) -> [String] {
        let away = awayDestinations().filter { destination == nil || $0.key == destination }
        let windows = (agent.live?.windows ?? []).compactMap { route, window in
            window.opening(at: now).map { "route \(route): \(Self.closed(window, until: $0))" }
        }
        return Set(away.values).sorted() + windows
    }

    private static func closed(_ window: DeliveryWindow, until opening: WallTime) -> String {
        "its window (\(window.text)) opens at \(opening.rfc3339(in: window.zone))"
    }

    /// The destinations of `names` to which nothing is sent although they are not paused, as the end of a sentence.
    func stillAway(_ names: [String]) -> String {
        guard agent.live != nil else { return "" }
        let away = awayDestinations()
        return Set(names.compactMap { away[$0] }).sorted().map { "; \($0)" }.joined()
    }
}
