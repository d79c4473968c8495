import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct ClaimStockTests {
    /// Claims of files of their own, to these destinations, in this order.
    private func claims(
        _ destinations: String..., expire: Duration? = nil, worksOnFirst: Bool = false,
        priority: Priority = .normal
    ) async throws -> [Claim] {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for (number, destination) in destinations.enumerated() {
            let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: UInt64(number), device: 1)
            var plan = Plan(
                route: "all", category: "other", key: "\(number)", mediaType: "text/plain", destinations: [destination],
                retry: RetryPolicy(expire: expire))
            plan.priority = priority
            let arrival = Arrival(root: "/in", path: FilePath("\(number)"), identity: identity)
            let admission = FileAdmission(arrival, plan: plan, lanes: [destination: .small], uptimes: [:])
            _ = try await journal.admit(admission, at: WallTime(milliseconds: Int64(number)))
        }
        let rooms = Set(destinations).map { ClaimRoom(destination: $0, limits: [.small: 100]) }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: 100, owner: "test")
        if worksOnFirst {
            let one = ClaimWish(lane: .small, rooms: rooms, most: 1, owner: "test")
            let ended = try await journal.exchange([], for: one, at: .now).claims.map {
                EndedClaim($0, .waiting(until: WallTime(milliseconds: 0), saying: "queued"))
            }
            let none = ClaimWish(lane: .small, rooms: [], most: 0, owner: "test")
            _ = try await journal.exchange(ended, for: none, at: .now)
        }
        let claims = try await journal.exchange([], for: wish, at: .now).claims
        #expect(claims.map(\.delivery.destination) == destinations)
        return claims
    }

    private func keys(_ claims: [Claim]) -> [String?] { claims.map(\.delivery.key) }

    @Test func `claims start in their order, each once`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a", "b", "a"))
        #expect(stock.setLimits(["a": 9, "b": 9]).isEmpty)
        #expect(stock.count == 3)
        #expect(keys([stock.take(), stock.take(), stock.take()].compactMap(\.self)) == ["0", "1", "2"])
        #expect(stock.take() == nil)
        #expect(stock.count == 3)
        stock.end("a")
        #expect(stock.count == 2)
    }

    @Test func `ends gather while loops have work at hand, and for no longer than that`() async throws {
        var state = SmallWork.State()
        let some = try await claims("a")[0]
        func with(waiting: Int, running: Int, ended: Int) -> Duration? {
            state.stock = ClaimStock()
            _ = state.stock.setLimits(["a": running])
            state.stock.add(Array(repeating: some, count: running))
            for _ in 0..<running { _ = state.stock.take() }
            state.stock.add(Array(repeating: some, count: waiting))
            state.ended = Array(repeating: .back(some), count: ended)
            return state.pause
        }
        // Little is under way: each end is written at once.
        #expect(with(waiting: 0, running: 4, ended: 4) == nil)
        #expect(with(waiting: 90, running: 32, ended: 6) == .milliseconds(10))
        #expect(with(waiting: 40, running: 32, ended: SmallWork.batch) == nil)
        // The loops would run dry.
        #expect(with(waiting: 3, running: 32, ended: 6) == .milliseconds(2))
        #expect(with(waiting: 3, running: 32, ended: 40) == nil)
    }

    @Test func `what is more urgent starts before what is at hand already, and after what is as urgent`() async throws {
        var stock = ClaimStock()
        for priority in [Priority.normal, .low, .high, .normal, .high] {
            stock.add(try await claims("a", "a", priority: priority))
        }
        _ = stock.setLimits(["a": 99])
        var taken: [Claim] = []
        while let claim = stock.take() { taken.append(claim) }
        let ranks = taken.map(\.delivery.priority)
        #expect(ranks == [.high, .high, .high, .high, .normal, .normal, .normal, .normal, .low, .low])
        #expect(keys(taken) == (0..<5).flatMap { _ in ["0", "1"] })
    }

    @Test func `a destination that has all it may have lets others pass`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a", "a", "b", "a"))
        _ = stock.setLimits(["a": 1, "b": 1])
        #expect(stock.take()?.delivery.key == "0")
        #expect(stock.take()?.delivery.key == "2")
        #expect(stock.take() == nil)
        stock.end("b")
        #expect(stock.take() == nil)
        stock.end("a")
        #expect(stock.take()?.delivery.key == "1")
        #expect(stock.take() == nil)
    }

    @Test func `a limit that shrinks below what runs starts nothing until enough has ended`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a", "a", "a"))
        _ = stock.setLimits(["a": 2])
        #expect(stock.take() != nil && stock.take() != nil)
        #expect(stock.setLimits(["a": 1]).isEmpty)
        stock.end("a")
        #expect(stock.take() == nil)
        stock.end("a")
        #expect(stock.take()?.delivery.key == "2")
    }

    @Test func `what waits for a destination that has no room is handed back, what runs is not`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a", "a", "b", "a"))
        _ = stock.setLimits(["a": 1, "b": 1])
        #expect(stock.take()?.delivery.key == "0")
        #expect(keys(stock.setLimits(["b": 1])) == ["1", "3"])
        #expect(stock.count == 2)
        #expect(stock.setLimits(["b": 1]).isEmpty)
        #expect(keys(stock.setLimits(["a": 0, "b": 0])) == ["2"])
        #expect(stock.take() == nil)
        stock.end("a")
        #expect(stock.count == 0)
        stock.end("a")
        #expect(stock.count == 0)
    }

    @Test func `what has waited for too long is taken out, unless its destination works on it`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a", "a", "b", expire: .seconds(10), worksOnFirst: true))
        #expect(stock.nextExpiry(["a": 4000]) == .seconds(6))
        #expect(stock.nextExpiry([:]) == nil)
        #expect(stock.takeExpired(["a": 9999, "b": 9999]).isEmpty)
        #expect(keys(stock.takeExpired(["a": 10_000])) == ["1"])
        #expect(stock.nextExpiry(["a": 10_000]) == nil)
        #expect(keys(stock.takeExpired(["a": 99_000, "b": 99_000])) == ["2"])
        #expect(stock.count == 1)
    }

    @Test func `nothing starts before the limits are known`() async throws {
        var stock = ClaimStock()
        stock.add(try await claims("a"))
        #expect(stock.take() == nil)
        #expect(stock.count == 1)
    }

    @Test func `ends gather while much is under way, and for longer while the loops have claims at hand`() async throws
    {
        let claim = try #require(try await claims("a").first)
        var state = SmallWork.State()
        func add(_ count: Int) { state.stock.add(Array(repeating: claim, count: count)) }
        func end(_ count: Int) { state.ended += Array(repeating: .back(claim), count: count) }
        add(SmallWork.crowd)
        #expect(state.pause == nil, "few: each end is written at once")
        add(1)
        #expect(state.pause == .milliseconds(2))
        end(SmallWork.batch / 4)
        #expect(state.pause == nil, "the loops run dry, and enough has ended")
        add(SmallWork.reserve - SmallWork.crowd - 1)
        #expect(state.pause == .milliseconds(10))
        end(SmallWork.batch - SmallWork.batch / 4)
        #expect(state.pause == nil, "enough for one transaction")
    }
}
