internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// This agent's parts of limits that hold for the whole fleet. All parts together never exceed a limit: nothing begins
/// at a limited destination before the fleet has granted a part, or is known to be away.
final class FleetShares: RateShare {
    /// A destination with a limit.
    private struct Part: Sendable {
        /// The part in effect; nil before the first answer.
        var rate: Int64?
        var slots: Int?
        var until: ContinuousClock.Instant?
        var isAssumed = false

        func isValid(at now: ContinuousClock.Instant) -> Bool { until.map { now < $0 } ?? false }
    }

    /// More slots than any agent has.
    private static let everything = 1_000_000

    private let member: FleetMember
    private let parts = Mutex<[String: Part]>([:])

    static let leastRate: Int64 = 64 << 10
    /// A destination without a limit is asked for one again after this time.
    private static let rareLook = Duration.seconds(60)

    init(_ member: FleetMember) { self.member = member }

    func bounded(_ room: ClaimCapacity) -> ClaimCapacity {
        guard let part = parts.withLock({ $0[room.destination] }) else { return room }
        var room = room
        if !part.isValid(at: .now) || part.rate == 0 {
            room.limits = room.limits.mapValues { _ in 0 }
        } else if let slots = part.slots, let big = room.limits[.big] {
            room.limits[.big] = min(big, slots)
        }
        return room
    }

    /// The parts in effect, for people.
    func report() -> [FleetReport.Share] {
        parts.withLock { parts in
            parts.sorted { $0.key < $1.key }.filter { $0.value.isValid(at: .now) }.map { name, part in
                FleetReport.Share(
                    destination: name, rate: part.rate, slots: part.slots, isAssumed: part.isAssumed)
            }
        }
    }

    /// Limits that the configuration names hold from the start.
    func begin() {
        let named = member.places.compactMapValues { $0.share.isLimited ? Part() : nil }
        parts.withLock { parts in parts = named.merging(parts.filter { member.places[$0.key] != nil }) { $1 } }
    }

    // MARK: - Asking

    /// Asks every third of a lease while files are sent, and gives parts back when none are.
    func run(_ shared: Shared, _ bandwidth: BandwidthControl) async {
        var asker = Asker(shares: self, shared: shared, bandwidth: bandwidth)
        await member.signals[.fleet(.shares)].loop {
            // Files come by thousands: they share a look.
            guard await Task.rest(for: .milliseconds(50)) else { return nil }
            return await asker.pass(at: .now)
        }
    }

    private struct Asker {
        let shares: FleetShares
        let shared: Shared
        let bandwidth: BandwidthControl
        /// When each destination is asked for next.
        var due: [String: ContinuousClock.Instant] = [:]
        /// Destinations that had work at the last look.
        var busy: Set<String> = []
        /// Destinations whose rate is bounded.
        var bound: Set<String> = []
        /// Limits that were named in this session, and the objection to each that was logged.
        var named: [String: (session: Int64, objection: String?)] = [:]

        var member: FleetMember { shares.member }

        mutating func pass(at now: ContinuousClock.Instant) async -> ContinuousClock.Instant? {
            // Without an answer of the journal, as if there were work.
            let counts = try? await shared.journal.queueCounts()
            let wanted = member.places.keys.filter { name in
                counts.map { ($0[name]?.waiting ?? 0) + ($0[name]?.claimed ?? 0) > 0 } ?? true
            }
            for name in busy.subtracting(wanted) { await giveBack(name) }
            for name in bound.subtracting(member.places.keys) { bind(name, to: nil) }
            busy = Set(wanted)
            var hasChanged = false
            for name in wanted where (due[name] ?? now) <= now { if await ask(name, at: now) { hasChanged = true } }
            if hasChanged { shared.signals.raiseLanes() }
            return wanted.compactMap { due[$0] }.min()
        }

        /// - Returns: whether more may begin than before.
        private mutating func ask(_ name: String, at now: ContinuousClock.Instant) async -> Bool {
            let before = shares.parts.withLock { $0[name] }
            do throws(FleetError) {
                let number = try await member.number(of: name)
                try await nameLimit(name, number)
                let running = shared.lanes.with(LaneID(destination: name, lane: .big)) { $0.running }
                let share = try await member.link.share(
                    number, rate: .max, slots: FleetShares.everything, using: running)
                due[name] = now.advanced(by: share == nil ? FleetShares.rareLook : member.beat)
                shares.parts.withLock { parts in
                    guard let share else { return parts[name] = nil }
                    // A part that is not limited is as large as asked for.
                    let rate = share.rate.flatMap { $0 == .max ? nil : $0 }
                    let slots = share.slots.flatMap { $0 == FleetShares.everything ? nil : $0 }
                    parts[name] = Part(rate: rate, slots: slots, until: share.until)
                }
            } catch {
                // The standing has the reason; meanwhile a part is assumed.
                due[name] = now.advanced(by: member.beat)
                shares.assume(name, at: now)
            }
            let after = shares.parts.withLock { $0[name] }
            bind(name, to: after?.rate)
            return (before?.isValid(at: now) ?? true, before?.slots, before?.rate == 0)
                != (after?.isValid(at: now) ?? true, after?.slots, after?.rate == 0)
        }

        private mutating func bind(_ name: String, to rate: Int64?) {
            if rate == nil { bound.remove(name) } else { bound.insert(name) }
            bandwidth.bound(name, to: rate)
        }

        /// A limit is the fleet's as soon as one agent names it; another one is an error.
        private mutating func nameLimit(_ name: String, _ number: Int32) async throws(FleetError) {
            guard let limit = member.places[name]?.share, limit.isLimited,
                named[name]?.session != member.session
            else { return }
            let other = try await member.link.limit(number, bandwidth: limit.bandwidth, slots: limit.slots)
            let objection = other.map {
                "destinations.\(name).fleet: \(member.name) names another limit than "
                    + "\(DisplayText.escape($0)), whose limit holds; write the same at both, or run 'inlet fleet limit'"
            }
            if let objection, objection != named[name]?.objection {
                shared.log.emit(.agentError(reason: objection))
            }
            named[name] = (member.session, objection)
        }

        private mutating func giveBack(_ name: String) async {
            due[name] = nil
            guard shares.parts.withLock({ $0[name]?.until }) != nil else { return }
            shares.parts.withLock { $0[name]?.until = nil }
            // It ends by itself after one lease.
            _ = try? await member.link.share(try await member.number(of: name), rate: 0, slots: 0, using: 0)
        }
    }

    /// While PostgreSQL is away: the last part until it ends, then an equal part of the limit. A start first waits for
    /// one lease, in which the parts of others end.
    private func assume(_ name: String, at now: ContinuousClock.Instant) {
        let (count, ttl) = (Int64(member.agentsKnown), member.standing.ttl)
        if let since = member.failingSince, now - since < ttl { return }
        let limit = member.places[name]?.share ?? FleetShareSettings()
        parts.withLock { parts in
            guard var part = parts[name], part.isAssumed || !part.isValid(at: now) else { return }
            if let rate = limit.bandwidth ?? part.rate {
                part.rate = max(Self.leastRate, limit.bandwidth == nil ? rate : rate / count)
            }
            if let slots = limit.slots ?? part.slots {
                part.slots = max(1, limit.slots == nil ? slots : slots / Int(count))
            }
            (part.isAssumed, part.until) = (true, now.advanced(by: member.beat * 2 + .seconds(1)))
            parts[name] = part
        }
    }
}

extension FleetShareSettings {
    var isLimited: Bool { bandwidth != nil || slots != nil }
}
