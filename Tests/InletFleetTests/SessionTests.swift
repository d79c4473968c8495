import InletCore
import InletFleet
import Testing

/// The session's decisions, with a time of the test's own.
struct SessionTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant {
        start + .milliseconds(Int((seconds * 1000).rounded()))
    }

    private func welcome(
        _ session: Int64 = 1, ttl: Duration = .seconds(15), mark: Int64 = 1, epoch: Int32 = 1, own: Int32 = 1,
        _ phase: FleetPhase = .open, wait: Duration = .zero
    ) -> FleetWelcome {
        FleetWelcome(session: session, ttl: ttl, mark: mark, epoch: epoch, ownEpoch: own, phase: phase, wait: wait)
    }

    private func beat(_ phase: FleetPhase = .open, epoch: Int32 = 1, mark: Int64 = 2) -> FleetBeat {
        FleetBeat(ttl: .seconds(15), mark: mark, epoch: epoch, phase: phase)
    }

    /// A member that is about to say hello with number 1.
    private func counted() -> FleetSession {
        var session = FleetSession(isMember: true, at: start)
        #expect(session.next(at: start) == .connect)
        session.apply(.connected, at: start)
        #expect(session.next(at: start) == .count)
        session.apply(.counted(1), at: start)
        #expect(session.next(at: start) == .hello(number: 1))
        return session
    }

    private func live() -> FleetSession {
        var session = counted()
        session.apply(.welcomed(welcome(), asked: start), at: at(0.1))
        return session
    }

    @Test func `a member connects, counts, says hello, and beats every third of a lease`() {
        var session = live()
        #expect(session.state(at: at(1)) == .live(until: at(13.5)) && session.liveSession(at: at(1)) == 1)
        #expect(session.next(at: at(1)) == .rest(until: at(5)))
        #expect(session.next(at: at(5)) == .beat(session: 1, isDurable: false))
        session.apply(.beaten(beat(), session: 1, asked: at(5)), at: at(5.2))
        #expect(session.next(at: at(6)) == .rest(until: at(10)))
        #expect(session.left(at: at(6)) == .seconds(12.5))
    }

    @Test func `one beat a minute is durable`() {
        var session = live()
        var durable: [Double] = []
        for second in stride(from: 5.0, through: 180, by: 5) {
            if session.next(at: at(second)) == .beat(session: 1, isDurable: true) { durable.append(second) }
            session.apply(.beaten(beat(), session: 1, asked: at(second)), at: at(second))
        }
        #expect(durable == [60, 120, 180])
    }

    @Test(arguments: [(1, 0.7), (3, 2.7), (15, 13.5), (600, 540)])
    func `the own deadline is a margin before the server's, counted from the question`(ttl: Int, own: Double) {
        var session = counted()
        session.apply(.welcomed(welcome(ttl: .seconds(ttl)), asked: start), at: at(0.5))
        #expect(session.liveSession(at: at(own - 0.001)) == 1)
        #expect(session.liveSession(at: at(own)) == nil && session.state(at: at(own)) == .connecting)
        #expect(session.left(at: at(own)) == nil)
    }

    @Test func `a session past its deadline beats on: the server decides whether it is over`() {
        var session = live()
        #expect(session.next(at: at(14)) == .beat(session: 1, isDurable: false))
        #expect(session.liveSession(at: at(14)) == nil)
        session.apply(.beaten(beat(), session: 1, asked: at(14)), at: at(14))
        #expect(session.liveSession(at: at(14.1)) == 1)
    }

    @Test func `the rest ends with the deadline, so that its end is seen`() {
        var session = live()
        session.apply(.failed(FleetFailure(.untrusted, isDisconnected: true, jitter: 0)), at: at(5))
        #expect(session.next(at: at(6)) == .rest(until: at(13.5)))
        #expect(session.next(at: at(13.5)) == .rest(until: at(65)))
        #expect(session.state(at: at(13.5)) == .refused(.untrusted))
    }

    @Test(arguments: [FleetError.Code.sessionOver, .wentBack])
    func `a session that is over says hello at once with another number, and then with a pause`(
        code: FleetError.Code
    ) {
        var session = live()
        session.apply(.failed(FleetFailure(code, session: 1, jitter: 0.5)), at: at(2))
        #expect(session.liveSession(at: at(2)) == nil && session.next(at: at(2)) == .count)
        session.apply(.counted(2), at: at(2))
        #expect(session.next(at: at(2)) == .hello(number: 2))
        session.apply(.welcomed(welcome(2), asked: at(2)), at: at(2))
        session.apply(.failed(FleetFailure(code, session: 2, jitter: 0.5)), at: at(3))
        #expect(session.next(at: at(3)) == .rest(until: at(3.3)), "it does not spin")
    }

    @Test func `after a reconnect it says hello again, and the session lives on until the answer`() {
        var session = live()
        session.apply(.failed(FleetFailure(.away, isDisconnected: true, jitter: 0)), at: at(5))
        #expect(session.next(at: at(5)) == .rest(until: at(5.2)) && session.liveSession(at: at(5.2)) == 1)
        #expect(session.next(at: at(5.2)) == .connect)
        session.apply(.connected, at: at(5.3))
        session.apply(.counted(2), at: at(5.3))
        #expect(session.next(at: at(5.3)) == .hello(number: 2) && session.liveSession(at: at(5.3)) == 1)
        session.apply(.welcomed(welcome(2), asked: at(5.3)), at: at(5.4))
        #expect(session.liveSession(at: at(5.4)) == 2)
    }

    @Test func `connections are tried with growing pauses of full jitter, 0,2 to 10 seconds`() {
        for (jitter, expected) in [
            (0, Array(repeating: 0.2, count: 8)), (0.999_999, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]),
        ] as [(Double, [Double])] {
            var session = FleetSession(isMember: true, at: start)
            var now = start
            for pause in expected {
                #expect(session.next(at: now) == .connect)
                session.apply(.failed(FleetFailure(.away, isDisconnected: true, jitter: jitter)), at: now)
                guard case .rest(let until) = session.next(at: now) else {
                    Issue.record("it does not wait")
                    return
                }
                #expect(abs((until - now).seconds - pause) < 0.002)
                now = until
            }
            #expect(session.state(at: now) == .connecting)
        }
    }

    @Test(
        arguments: [
            (.schema, nil, 60), (.unknownAgent, nil, 60), (.usedTwice, nil, 60), (.untrusted, nil, 60),
            (.refused, nil, 60),
            (.library, nil, 60), (.fault, nil, 60), (.isAlive, 7000, 7.1), (.isAlive, 0, 1), (.isAlive, 86_400_000, 60),
        ] as [(FleetError.Code, Int?, Double)])
    func `a refusal is looked at again, with the identity as it is then`(
        code: FleetError.Code, left: Int?, wait: Double
    ) {
        var session = counted()
        let failure = FleetFailure(code, wait: left.map { .milliseconds($0) }, jitter: 0.5)
        session.apply(.failed(failure), at: start)
        #expect(session.state(at: start) == .refused(code))
        #expect(session.next(at: start) == .rest(until: at(wait)))
        #expect(session.next(at: at(wait)) == .identify)
        session.apply(.identified(isMember: true, isNew: false), at: at(wait))
        #expect(session.next(at: at(wait)) != .identify)
        session.apply(.lookAgain, at: at(wait + 1))
        #expect(session.next(at: at(wait + 1)) == .identify)
    }

    @Test func `a journal that keeps no number is asked again within seconds, and the server is not asked before`() {
        var session = FleetSession(isMember: true, at: start)
        session.apply(.connected, at: start)
        var now = start
        for number in 0..<20 {
            #expect(session.next(at: now) == .count)
            session.apply(.failed(FleetFailure(.journal, jitter: 0.999_999)), at: now)
            #expect(session.state(at: now) == .refused(.journal))
            guard case .rest(let until) = session.next(at: now), until - now <= .seconds(10) else {
                Issue.record("try \(number): it does not wait, or for too long")
                return
            }
            now = until
            #expect(session.next(at: now) == .identify)
            session.apply(.identified(isMember: true, isNew: false), at: now)
        }
        session.apply(.counted(1), at: now)
        #expect(session.next(at: now) == .hello(number: 1))
        // Its number was said to nobody.
        session.apply(.failed(FleetFailure(.journal, jitter: 0)), at: now)
        session.apply(.lookAgain, at: now)
        session.apply(.identified(isMember: true, isNew: false), at: now)
        #expect(session.next(at: now) == .hello(number: 1))
    }

    @Test func `a number that the server refused is said again, so that a copy does not overtake its original`() {
        var session = counted()
        for minute in 1...3 {
            session.apply(.failed(FleetFailure(.usedTwice, jitter: 0)), at: at(Double(minute - 1) * 60))
            let now = at(Double(minute) * 60)
            session.apply(.identified(isMember: true, isNew: false), at: now)
            #expect(session.next(at: now) == .hello(number: 1))
        }
        // Not even where the server was away in between.
        session.apply(.failed(FleetFailure(.usedTwice, jitter: 0)), at: at(180))
        session.apply(.identified(isMember: true, isNew: false), at: at(240))
        session.apply(.failed(FleetFailure(.away, isDisconnected: true, jitter: 0)), at: at(240))
        session.apply(.connected, at: at(241))
        #expect(session.next(at: at(241)) == .hello(number: 1))
    }

    @Test func `a new identity counts anew, and none waits for one`() {
        var session = live()
        session.apply(.lookAgain, at: at(1))
        session.apply(.identified(isMember: false, isNew: true), at: at(1))
        #expect(session.state(at: at(1)) == .alone && session.liveSession(at: at(1)) == nil)
        #expect(session.next(at: at(1)) == .rest(until: at(61)) && session.next(at: at(61)) == .identify)
        session.apply(.identified(isMember: true, isNew: true), at: at(61))
        #expect(session.next(at: at(61)) == .count)
        session.apply(.counted(1), at: at(61))
        #expect(session.next(at: at(61)) == .hello(number: 1))
    }

    @Test func `a memory that repeats a number is not believed`() {
        var session = live()
        session.apply(.failed(FleetFailure(.sessionOver, session: 1, jitter: 0)), at: at(2))
        session.apply(.counted(1), at: at(2))
        #expect(session.state(at: at(2)) == .refused(.fault) && session.next(at: at(2)) == .rest(until: at(62)))
    }

    @Test func `while the fleet confirms, the session lives, and asks when that is over`() {
        var session = counted()
        session.apply(.welcomed(welcome(1, .confirming, wait: .seconds(2)), asked: start), at: start)
        #expect(session.state(at: at(1)) == .confirming && session.liveSession(at: at(1)) == 1)
        #expect(session.next(at: at(1)) == .rest(until: at(2.05)))
        session.apply(.beaten(beat(), session: 1, asked: at(2.05)), at: at(2.1))
        #expect(session.state(at: at(2.1)) == .live(until: at(2.05 + 13.5)))
    }

    @Test func `a session of a recovering fleet owes a report from the mark that is left, and is open with the others`()
    {
        var session = live()
        session.apply(.beaten(beat(.recovering, epoch: 2, mark: 40), session: 1, asked: at(5)), at: at(5))
        #expect(session.state(at: at(5)) == .reporting(since: at(5)) && session.owesReport)
        #expect(session.reportFrom == 40 && session.liveSession(at: at(5)) == 1)
        session.apply(.reported(.recovering, epoch: 2, session: 99), at: at(6))
        #expect(session.owesReport, "of an earlier session")
        session.apply(.reported(.recovering, epoch: 2, session: 1), at: at(6))
        #expect(session.state(at: at(6)) == .reporting(since: at(5)) && !session.owesReport)
        session.apply(.beaten(beat(.open, epoch: 2, mark: 41), session: 1, asked: at(10)), at: at(10))
        #expect(session.state(at: at(10)) == .live(until: at(23.5)) && !session.owesReport)
    }

    @Test func `a report that began before another loss is not that one's`() {
        var session = live()
        session.apply(.beaten(beat(.recovering, epoch: 2, mark: 40), session: 1, asked: at(5)), at: at(5))
        session.apply(.beaten(beat(.recovering, epoch: 3, mark: 30), session: 1, asked: at(6)), at: at(6))
        session.apply(.reported(.recovering, epoch: 2, session: 1), at: at(7))
        #expect(session.owesReport && session.reportFrom == 30)
        session.apply(.reported(.open, epoch: 3, session: 1), at: at(8))
        #expect(!session.owesReport)
    }

    @Test(arguments: [FleetError.Code.usedTwice, .isAlive])
    func `an identity that another process has stays refused while the server is away`(code: FleetError.Code) {
        var session = counted()
        session.apply(.failed(FleetFailure(code, jitter: 0)), at: start)
        for other in [FleetError.Code.away, .untrusted, .fault] {
            session.apply(.failed(FleetFailure(other, isDisconnected: true, jitter: 0)), at: at(1))
            #expect(session.state(at: at(1)) == .refused(code), "\(other)")
        }
        session.apply(.failed(FleetFailure(.unknownAgent, jitter: 0)), at: at(2))
        #expect(session.state(at: at(2)) == .refused(.unknownAgent))
    }

    @Test func `an identity that was refused as a copy's says no hello, until there is another one`() {
        var session = FleetSession(isMember: true, isUsedTwice: true, at: start)
        #expect(session.state(at: start) == .refused(.usedTwice) && session.next(at: start) == .identify)
        session.apply(.identified(isMember: true, isNew: false, isUsedTwice: true), at: start)
        #expect(session.state(at: start) == .refused(.usedTwice) && session.next(at: start) == .rest(until: at(60)))
        #expect(session.next(at: at(60)) == .identify)
        session.apply(.identified(isMember: true, isNew: true), at: at(60))
        #expect(session.state(at: at(60)) == .connecting && session.next(at: at(60)) == .connect)
    }

    @Test func `a hello that finds an older mark owes a report`() {
        var session = counted()
        session.apply(.welcomed(welcome(mark: 3, epoch: 4, own: 3, .recovering), asked: start), at: start)
        #expect(session.owesReport && session.reportFrom == 3)
        #expect(session.state(at: start) == .reporting(since: start))
    }

    @Test(arguments: [FleetError.Code.nothingGranted, .reportFirst])
    func `a call that is granted nothing has the next beat come at once, once`(code: FleetError.Code) {
        var session = live()
        session.apply(.failed(FleetFailure(code, session: 1, jitter: 0)), at: at(1))
        #expect(session.next(at: at(1)) == .beat(session: 1, isDurable: false))
        session.apply(.beaten(beat(.recovering, epoch: 2), session: 1, asked: at(1)), at: at(1))
        session.apply(.failed(FleetFailure(code, session: 1, jitter: 0)), at: at(1.1))
        #expect(session.next(at: at(1.1)) == .rest(until: at(6)), "the phase is known")
    }

    @Test(arguments: FleetError.Code.allCases)
    func `an answer to an earlier session, and a call's own failure, leave the session alone`(code: FleetError.Code) {
        let before = live()
        var session = before
        session.apply(.failed(FleetFailure(code, session: 99, jitter: 0)), at: at(1))
        #expect(session == before)
        session.apply(.beaten(beat(.recovering, epoch: 7), session: 99, asked: at(1)), at: at(1))
        #expect(session == before)
        if [.fenced, .notMember, .argument, .fault, .away].contains(code) {
            session.apply(.failed(FleetFailure(code, session: 1, jitter: 0)), at: at(1))
            #expect(session == before)
        }
    }
}
