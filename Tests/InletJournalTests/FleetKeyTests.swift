import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Words for what a fleet says about keys.
extension Bench {
    /// A journal whose deliveries wait for their keys.
    static func inFleet(_ destinations: [String: String?] = ["r2": nil]) async throws -> Bench {
        let bench = try Bench()
        try await bench.journal.reserveKeys(at: destinations)
        return bench
    }

    func requests() async throws -> [KeyRequest] { try await journal.keyRequests(limit: 1000) }

    /// Gives the same answer to all that waits for one.
    @discardableResult
    func answer(_ answer: KeyAnswer, at time: WallTime = start) async throws -> (released: Int, again: Int) {
        try await journal.answerKeys(requests().map { ($0, answer) }, at: time)
    }

    func delivery(_ file: Int64, _ number: Int = 0) async throws -> DeliveryRow {
        try await job(file).deliveries[number]
    }

    /// Claims what is due, and lets go of it uncounted. - Returns: the keys.
    func due(_ destination: String = "r2", at time: WallTime = start) async throws -> [String] {
        let claims = try await claimAll([destination], at: time)
        for claim in claims { try await end(claim, .again(time), at: time) }
        return claims.compactMap(\.delivery.key).sorted()
    }
}

/// Deliveries wait for the fleet's answers about their keys.
@Suite(.seated) struct FleetKeyTests {
    @Test func `nothing is due before its key is granted, however it was admitted`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.offer((0..<9).map { .test("many-\($0)") })
        try await bench.admit("one", to: ["r2", "disk"])
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.due("disk") == ["one"])
        let queue = try #require(try await bench.journal.queueCounts()["r2"])
        #expect(queue.held == 10 && queue.waiting == 0)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        let requests = try await bench.requests()
        #expect(requests.map(\.key) == (0..<9).map { "many-\($0)" } + ["one"])
        #expect(requests.last?.path == "/in/one" && requests.allSatisfy { $0.since == Bench.start && $0.ref >= 0 })
        #expect(Set(requests.map(\.ref)).count == 10)
        #expect(try await bench.journal.answerKeys([(requests[3], .granted(mark: 7))], at: Bench.start) == (1, 0))
        #expect(try await bench.due() == ["many-3"])
        #expect(try await bench.requests().count == 9)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `keys below the agent's own prefix are never asked for`() async throws {
        let bench = try await Bench.inFleet(["r2": "me/"])
        try await bench.admit("a", key: "me/a")
        try await bench.admit("b", key: "you/b")
        #expect(try await bench.requests().map(\.key) == ["you/b"])
        #expect(try await bench.due() == ["me/a"])
    }

    @Test func `a delivery that was due before waits too, unless something may be under its key`() async throws {
        let bench = try Bench()
        try await bench.admit("begun")
        try await bench.leave(["upload": [1]], .again())
        try await bench.admit("fresh")
        try await bench.journal.reserveKeys(at: ["r2": nil])
        #expect(try await bench.requests().map(\.key) == ["fresh"])
        #expect(try await bench.due() == ["begun"])
    }

    @Test func `a delivery waits on over a restart, and is due where there is no fleet any more`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.admit("a", expire: .seconds(60))
        let request = try await bench.requests()
        let journal = try bench.reopen()
        defer { journal.close() }
        _ = try await journal.recover(destinations: ["r2"], at: Bench.start)
        try await journal.reserveKeys(at: ["r2": nil])
        #expect(try await journal.keyRequests(limit: 10) == request)
        #expect(try await journal.settle(.test(.delivered)) == nil)
        _ = try await journal.setUptime("r2", 5000, at: Bench.start)
        try await journal.reserveKeys(at: [:])
        #expect(try await journal.keyRequests(limit: 10).isEmpty)
        let row = try #require(try await journal.settle(.delivered(.test("a")))?.row)
        #expect(row.key == "a" && row.expiresAt == 65_000)
        // Its key may be granted: that is reported.
        #expect(try await journal.grantedKeys(after: 9, limit: 9).map(\.ref) == request.map(\.ref))
    }

    @Test func `time to live begins when the key is granted`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a", expire: .seconds(60))
        #expect(try await bench.setUptime("r2", 300_000).isEmpty)
        try await bench.answer(.granted(mark: 1))
        #expect(try await bench.delivery(id).expiresAt == 360_000)
        #expect(try await bench.setUptime("r2", 360_000) == [id])
    }

    @Test func `a refused name is never used, and the next free one is asked for`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a.txt")
        #expect(try await bench.answer(.taken) == (0, 1))
        #expect(try await bench.requests().map(\.key) == ["a_2.txt"])
        #expect(try await bench.due().isEmpty)
        try await bench.answer(.taken)
        #expect(try await bench.requests().map(\.key) == ["a_3.txt"])
        try await bench.answer(.granted(mark: 1))
        #expect(try await bench.delivery(id).key == "a_3.txt")
        #expect(try await bench.due() == ["a_3.txt"])
        #expect(try await bench.delivery(bench.admit("b", key: "a.txt")).key == "a_4.txt")
    }

    @Test func `the ten thousandth equal name of a fleet needs few questions`() async throws {
        let bench = try await Bench.inFleet()
        let taken = Set((2...9999).map { KeyTemplate.disambiguated("a.txt", number: $0) } + ["a.txt"])
        for file in ["first", "second"] {
            try await bench.admit(file, key: "a.txt")
            var rounds = 0
            while let request = try await bench.requests().first {
                rounds += 1
                try await bench.answer(taken.contains(request.key) ? .taken : .granted(mark: 1))
            }
            #expect(rounds <= 16)
        }
    }

    @Test func `where the fleet cannot be asked, a file goes under its name with the agent's tag`() async throws {
        let bench = try await Bench.inFleet()
        let ids = [try await bench.admit("a.txt"), try await bench.admit("b", key: "a.txt")]
        #expect(try await bench.answer(.tagged(tag: "k3f9q2")) == (2, 0))
        let tagged = ["a.txt", "a_2.txt"].map { KeyTemplate.tagged($0, tag: "k3f9q2") }
        #expect(try await bench.due() == tagged.sorted())
        #expect(try await bench.delivery(ids[0]).key == tagged[0])
        // Nor is it asked for when it is sent again.
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(.failed)) }
        for id in ids { #expect(try await bench.retry(id)) }
        #expect(try await bench.requests().isEmpty)
        // The names that may have been granted go back.
        #expect(try await bench.journal.keysToReturn(limit: 9).map(\.key).sorted() == ["a.txt", "a_2.txt"])
    }

    @Test func `a delivery that waits on shows why, until its key is granted`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a")
        try await bench.answer(.waits(code: .timedOut, reason: "the fleet does not answer"))
        let row = try await bench.delivery(id)
        #expect(row.code == .timedOut && row.reason == "the fleet does not answer" && row.isHeld)
        #expect(try await bench.requests().count == 1)
        #expect(try await bench.journal.hurry(to: "r2", at: Bench.start) == 0)
        try await bench.answer(.granted(mark: 1))
        #expect(try await bench.delivery(id).code == nil)
        #expect(try await bench.delivery(id).reason == nil)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `an answer to a request that ended or changed does nothing`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a.txt")
        let old = try await bench.requests()[0]
        try await bench.answer(.taken)
        for answer in [.taken, .tagged(tag: "k3f9q2"), .granted(mark: 2)] as [KeyAnswer] {
            #expect(try await bench.journal.answerKeys([(old, answer)], at: Bench.start) == (0, 0))
        }
        #expect(try await bench.delivery(id).key == "a_2.txt")
        #expect(try await bench.delivery(id).isHeld)
    }
}

/// What else a delivery waits for, and what becomes of its file meanwhile.
@Suite(.seated) struct FleetWaitTests {
    @Test(arguments: [true, false])
    func `a member of a unit waits for both`(isGrantedFirst: Bool) async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit(.test("u/a", expire: .seconds(60), unit: "u"))
        #expect(try await bench.requests().map(\.key) == ["u/a"])
        if isGrantedFirst {
            #expect(try await bench.answer(.granted(mark: 1)) == (0, 0))
        } else {
            try await bench.closeUnit("u", uptimes: ["r2": 7000])
        }
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.delivery(id).expiresAt == nil)
        if isGrantedFirst {
            try await bench.closeUnit("u", uptimes: ["r2": 7000])
        } else {
            try await bench.setUptime("r2", 7000)
            #expect(try await bench.answer(.granted(mark: 1)) == (1, 0))
        }
        #expect(try await bench.delivery(id).expiresAt == 67_000)
        #expect(try await bench.due() == ["u/a"])
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `a companion waits for its file and its key, and stays beside its file`() async throws {
        let bench = try await Bench.inFleet()
        let set = try await bench.admitSet(.test("a.jpg", companions: [.test("a.xmp")]))
        let main = try #require(set.main.newRow), companion = try #require(set.companions[0].newRow)
        let requests = try await bench.requests()
        #expect(requests.map(\.key) == ["a.jpg", "a.xmp"])
        let answers = [(requests[1], KeyAnswer.granted(mark: 1)), (requests[0], .taken)]
        #expect(try await bench.journal.answerKeys(answers, at: Bench.start) == (0, 1))
        #expect(try await bench.requests().map(\.key) == ["a_2.jpg", "a_2.xmp"])
        // The name that was granted goes back.
        #expect(try await bench.journal.keysToReturn(limit: 9).map(\.key) == ["a.xmp"])
        try await bench.answer(.granted(mark: 2))
        #expect(try await bench.due() == ["a_2.jpg"])
        try await bench.settle(.delivered(.test("a_2.jpg")))
        #expect(try await bench.due() == ["a_2.xmp"])
        #expect(try await bench.delivery(main).state == .delivered)
        #expect(try await bench.delivery(companion).state == .ready)
    }

    @Test(arguments: [[0, 1], [1, 0], [0]])
    func `a companion gets the tag with its file`(answered: [Int]) async throws {
        let bench = try await Bench.inFleet()
        _ = try await bench.admitSet(.test("a.jpg", companions: [.test("a.xmp")]))
        let requests = try await bench.requests()
        let answers = answered.map { (requests[$0], KeyAnswer.tagged(tag: "k3f9q2")) }
        #expect(try await bench.journal.answerKeys(answers, at: Bench.start) == (1, 0))
        #expect(try await bench.requests().isEmpty)
        let names = ["a.jpg", "a.xmp"].map { KeyTemplate.tagged($0, tag: "k3f9q2") }
        #expect(try await bench.due() == [names[0]])
        try await bench.settle(.delivered(.test(names[0])))
        #expect(try await bench.due() == [names[1]])
    }

    @Test(arguments: [true, false])
    func `what is released while it is parked still waits for its key`(isUnit: Bool) async throws {
        let bench = try await Bench.inFleet()
        let park = { _ = try await bench.journal.setDestinations(["disk"], at: Bench.start) }
        if isUnit {
            try await bench.admit(.test("u/a", unit: "u"))
            try await park()
            try await bench.closeUnit("u", uptimes: ["r2": 7000])
        } else {
            _ = try await bench.admitSet(.test("u/b", companions: [.test("u/a")]))
            let main = try await bench.requests().filter { $0.key == "u/b" }
            try await bench.journal.answerKeys(main.map { ($0, .granted(mark: 1)) }, at: Bench.start)
            try await bench.hold { _ in
                try await park()
                return .delivered(.test("u/b"))
            }
        }
        _ = try await bench.journal.setDestinations(["r2"], at: Bench.start)
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        #expect(try await bench.answer(.granted(mark: 2)) == (1, 0))
        let due = try await bench.due()
        #expect(due == [isUnit ? "u/a" : "u/b.u/a"])
    }

    @Test func `a person's retry says that it waits for its key`() async throws {
        let bench = try await Bench.inFleet()
        let order = FileAction.retry(uptimes: [:])
        let waiting = try await bench.admit("a")
        let said = try await bench.journal.act(order, on: [waiting], at: Bench.start).outcomes
        #expect(said == [.skipped("waits for its key in the fleet")])
        let member = try await bench.admit(.test("own/b", unit: "u"))
        try await bench.journal.reserveKeys(at: ["r2": "own/"])
        let other = try await bench.journal.act(order, on: [member], at: Bench.start).outcomes
        #expect(other == [.skipped("waits for another file, or for its unit")])
    }

    @Test func `the delivery that closes a unit asks for its key`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.admit(.test("u/a", unit: "u"))
        _ = try await bench.journal.closeUnit(
            "u", root: "/in", routes: ["all"], marker: nil, uptimes: [:], closing: ["r2"], at: Bench.start)
        try await bench.answer(.granted(mark: 1))
        try await bench.settle(.delivered(.test("u/a")))
        #expect(try await bench.claimAll(lane: .small).map(\.delivery.key) == ["u/session"])
    }

    @Test func `a cancelled delivery asks no more; sent again, it asks for the same`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a")
        let request = try await bench.requests()[0]
        try await bench.cancel(id)
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
        #expect(try await bench.retry(id))
        #expect(try await bench.requests().map(\.ref) == [request.ref])
        #expect(try await bench.due().isEmpty)
    }

    @Test func `the key of a forgotten file goes back, and nobody gets it before`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a")
        try await bench.answer(.granted(mark: 3))
        try await bench.cancel(id)
        try await bench.finishAll()
        #expect(try await bench.forget(id))
        let back = try await bench.journal.keysToReturn(limit: 9)
        #expect(back.map(\.key) == ["a"])
        try await bench.admit("b", key: "a")
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.journal.keysToReturn(limit: 9) == back)
        try await bench.journal.keysReturned(back)
        #expect(try await bench.requests().map(\.key) == ["a"])
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
    }

    @Test func `a granted key passes to the content that replaces the one that was never sent`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.admit("a")
        try await bench.answer(.granted(mark: 1))
        try await bench.admit("a", .test(size: 99))
        #expect(try await bench.due() == ["a"])
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
    }

    @Test func `a delivered key is kept, wherever its file goes`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a")
        try await bench.answer(.granted(mark: 4))
        try await bench.settleAndFinish(.delivered(.test("a")))
        #expect(try await bench.prune() == 1)
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
        #expect(try await bench.journal.grantedKeys(after: 3, limit: 9).map(\.key) == ["a"])
        #expect(try await bench.forget(id))
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
    }

    @Test func `adopted files ask for nothing`() async throws {
        let bench = try await Bench.inFleet()
        let admission = FileAdmission.test("a")
        let adoption = FileAdoption(admission.arrival, plan: admission.plan)
        let outcome = try await bench.journal.adopt([adoption], at: Bench.start)
        #expect(outcome.count == 1 && outcome != [.known])
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.journal.queueCounts()["r2"] == nil)
    }

    @Test(arguments: [true, false])
    func `a file that is renamed asks for its new name`(isGranted: Bool) async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a.txt")
        if isGranted { try await bench.answer(.granted(mark: 1)) }
        let arrival = FoundFile.test("b.txt", .test(changed: 2))
        let found = try #require(try await bench.journal.renamed(from: "a.txt", to: arrival))
        let plan = try #require(FileAdmission.test("b.txt").plan)
        #expect(try await bench.journal.rename(found, to: arrival, plan: plan))
        #expect(try await bench.requests().map(\.key) == ["b.txt"])
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.journal.keysToReturn(limit: 9).map(\.key) == ["a.txt"])
        try await bench.answer(.granted(mark: 2))
        #expect(try await bench.due() == ["b.txt"])
        #expect(try await bench.delivery(id).key == "b.txt")
    }

    @Test func `a file of which something may have arrived keeps its key when it is renamed`() async throws {
        let bench = try await Bench.inFleet()
        let id = try await bench.admit("a.txt")
        try await bench.answer(.granted(mark: 1))
        _ = try await bench.claimAll()
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        for claim in try await bench.claimAll(at: Bench.later) { try await bench.end(claim, .test(.failed)) }
        #expect(try await bench.retry(id))
        let arrival = FoundFile.test("b.txt", .test(changed: 2))
        let found = try #require(try await bench.journal.renamed(from: "a.txt", to: arrival))
        let plan = try #require(FileAdmission.test("b.txt").plan)
        #expect(try await bench.journal.rename(found, to: arrival, plan: plan))
        #expect(try await bench.due() == ["a.txt"])
    }

    @Test func `what is not sent yet asks again where its destination moves, also what had begun`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.journal.setAddresses(["r2": "https://one"])
        try await bench.admit("begun")
        try await bench.answer(.granted(mark: 1))
        try await bench.leave(["upload": [1]], .again())
        try await bench.admit("granted")
        try await bench.answer(.granted(mark: 2))
        try await bench.admit("asked")
        let asked = try await bench.requests()
        #expect(try await bench.due() == ["begun", "granted"])
        #expect(try await bench.journal.setAddresses(["r2": "https://two"]) == ["r2"])
        // An answer of the former address comes late.
        #expect(
            try await bench.journal.answerKeys(asked.map { ($0, .granted(mark: 3)) }, at: Bench.start) == (0, 0))
        #expect(try await bench.due().isEmpty)
        let requests = try await bench.requests()
        #expect(requests.map(\.key) == ["begun", "granted", "asked"] && requests.last?.ref != asked.first?.ref)
        try await bench.answer(.granted(mark: 4))
        #expect(try await bench.due() == ["asked", "begun", "granted"])
    }

    @Test func `a key is granted for an address: where the destination moves, it is asked for again`() async throws {
        let bench = try await Bench.inFleet()
        try await bench.journal.setAddresses(["r2": "https://one"])
        let id = try await bench.admit("a")
        try await bench.answer(.granted(mark: 1))
        try await bench.settleAndFinish(.delivered(.test("a")))
        #expect(try await bench.journal.setAddresses(["r2": "https://two"]) == ["r2"])
        let rows: Set<Int64> = [try await bench.delivery(id).id]
        #expect(try await bench.journal.resend(rows, of: id, uptimes: [:], at: Bench.start))
        #expect(try await bench.requests().map(\.key) == ["a"])
        #expect(try await bench.due().isEmpty)
        try await bench.answer(.granted(mark: 2))
        #expect(
            try await bench.journal.grantedKeys(after: 0, limit: 9).map(\.address) == ["https://one", "https://two"])
    }
}
