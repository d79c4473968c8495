import InletCore
import InletFleet
import Testing

/// What holds for a session whatever happens in which order.
struct SessionPropertyTests {
    /// A server and a line that do anything, and the rules that are looked at after each step.
    private struct World {
        let seed: UInt64
        var random: SeededGenerator
        var now = ContinuousClock.now
        var session: FleetSession
        /// The latest end of each session, as the server may have it at the earliest.
        var ends: [Int64: ContinuousClock.Instant] = [:]
        /// Numbers that the server may have taken.
        var taken: Set<Int64> = []
        var counted: Int64 = 0
        var sessions: Int64 = 0

        init(seed: UInt64) {
            (self.seed, random) = (seed, SeededGenerator(seed: seed))
            session = FleetSession(isMember: true, at: now)
        }

        mutating func pass(_ most: Double) { now += .seconds(random.fraction() * most) }

        mutating func check() {
            guard let live = session.liveSession(at: now) else { return }
            let end = ends[live]
            #expect(end.map { now < $0 } ?? false, "seed \(seed): session \(live) outlives its lease")
        }

        private mutating func failure(_ codes: [FleetError.Code]) -> FleetFailure {
            FleetFailure(
                codes.randomElement(using: &random) ?? .away, wait: .seconds(random.fraction() * 100),
                isDisconnected: random.fraction() < 0.5, jitter: random.fraction())
        }

        private mutating func answer() -> (epoch: Int32, phase: FleetPhase, ttl: Duration) {
            let ttl = [1, 3, 15].randomElement(using: &random) ?? 15
            return (
                .random(in: 1...3, using: &random), FleetPhase.allCases.randomElement(using: &random) ?? .open,
                .seconds(ttl)
            )
        }

        /// - Parameter isKind: the server answers, in time and as one wishes.
        mutating func step(isKind: Bool) {
            if isKind, session.owesReport {
                session.apply(.reported(.open, epoch: session.epoch, session: sessions), at: now)
            }
            let action = session.next(at: now)
            let asked = now
            check()
            if case .rest(let until) = action {
                #expect(until > now && until <= now + .seconds(60.1), "seed \(seed): it rests for ever")
                now = isKind || random.fraction() < 0.7 ? until : now + (until - now) * random.fraction()
                if !isKind, random.fraction() < 0.3 { callFails() }
                return check()
            }
            if !isKind { pass(random.fraction() < 0.1 ? 30 : 0.5) }
            guard isKind || random.fraction() < 0.6 else {
                if case .hello(let number) = action { said(number) }
                let failure = self.failure(FleetError.Code.allCases)
                if case .hello(let number) = action,
                    [.schema, .unknownAgent, .isAlive, .usedTwice, .journal].contains(failure.code)
                {
                    taken.remove(number)
                }
                session.apply(.failed(failure), at: now)
                return check()
            }
            answered(action, asked, isKind)
            check()
        }

        private mutating func said(_ number: Int64) {
            #expect(taken.insert(number).inserted, "seed \(seed): \(number) was said twice")
        }

        private mutating func answered(
            _ action: FleetSession.Action, _ asked: ContinuousClock.Instant, _ isKind: Bool
        ) {
            let (epoch, phase, ttl) = isKind ? (3, .open, .seconds(15)) : answer()
            switch action {
            case .identify:
                session.apply(.identified(isMember: isKind || random.fraction() < 0.9, isNew: false), at: now)
            case .connect: session.apply(.connected, at: now)
            case .count:
                // Now and then a memory that does not count.
                if isKind || random.fraction() < 0.95 { counted += 1 }
                session.apply(.counted(counted), at: now)
            case .hello(let number):
                said(number)
                sessions += 1
                ends[sessions] = asked + ttl
                let own = isKind ? 3 : Int32.random(in: 1...3, using: &random)
                let welcome = FleetWelcome(
                    session: sessions, ttl: ttl, mark: sessions, epoch: epoch, ownEpoch: own, phase: phase,
                    wait: .seconds(random.fraction() * 15))
                session.apply(.welcomed(welcome, asked: asked), at: now)
            case .beat(let number, _):
                ends[number] = asked + ttl
                let beat = FleetBeat(ttl: ttl, mark: sessions, epoch: epoch, phase: phase)
                session.apply(.beaten(beat, session: number, asked: asked), at: now)
            case .rest: break
            }
        }

        private mutating func callFails() {
            var failure = self.failure(FleetError.Code.allCases)
            failure.session = session.liveSession(at: now) ?? sessions
            session.apply(.failed(failure), at: now)
        }
    }

    private static let seeds = [1, 2, 3, 5, 8, 13, 21, 34, UInt64.random(in: 100 ... .max)]

    @Test(arguments: seeds)
    func `no session lives past its lease, and no number is said twice once it may be taken`(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<4000 { world.step(isKind: false) }
        #expect(world.sessions > 100, "seed \(seed)")
    }

    @Test(arguments: seeds)
    func `from every state a session leads back to a live one by itself`(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<150 {
            for _ in 0..<Int.random(in: 1...25, using: &world.random) { world.step(isKind: false) }
            let begin = world.now
            var steps = 0
            while steps < 60 {
                if case .live = world.session.state(at: world.now) { break }
                world.step(isKind: true)
                steps += 1
            }
            guard case .live = world.session.state(at: world.now) else {
                Issue.record("seed \(seed): still \(world.session.state(at: world.now))")
                return
            }
            #expect(world.now - begin <= .seconds(190), "seed \(seed): it takes \(world.now - begin)")
        }
    }
}
