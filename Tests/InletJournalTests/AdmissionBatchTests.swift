import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Many files of one transaction: they get what each would get alone.
@Suite(.seated) struct AdmissionBatchTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// 45 names in order: more than one statement takes, and a rest.
    private static let names = (0..<45).map { "d/\(100 + $0).bin" }

    private func jobs(_ bench: Bench) async throws -> [Job] {
        try await bench.journal.jobs(FileFilter(limit: 500)).sorted { $0.file.id < $1.file.id }
    }

    private func keys(_ outcomes: [AdmittedFile], at destination: String = "r2") async throws -> [String?] {
        var keys: [String?] = []
        for outcome in outcomes {
            let job = try await bench.job(try #require(outcome.main.newRow))
            keys.append(job.deliveries.first { $0.destination == destination }?.key)
        }
        return keys
    }

    @Test func `files of one transaction get the rows that each would get alone`() async throws {
        let admissions = Self.names.enumerated().map { place, name in
            let identity = FileIdentity.test(
                size: Int64(place), modified: .min + Int64(place), changed: -1, inode: .max, device: 1 << 63)
            var admission = FileAdmission.test(
                name, identity, to: ["r2", "disk"], lane: place % 3 == 0 ? .small : .big,
                expire: place % 2 == 0 ? .seconds(60) : nil, uptime: Int64(place))
            if place == 7 { admission.arrival.path = FilePath(bytes: [0x64, 0x2F, 0xFF, 0x0A, 0x62]) }
            if place % 5 == 0 { admission.plan?.with = ["site": "north \(place)"] }
            if place % 4 == 0 { admission.plan?.labels = ["shift": "\(place)"] }
            admission.plan?.onSuccess = place < 20 ? .delete : .keep
            admission.plan?.priority = place == 9 ? .high : .normal
            admission.plan?.otherKeys = place == 11 ? ["disk": "else/where"] : [:]
            admission.plan?.digests = place == 12 ? [.content(1)] : []
            return admission
        }
        let alone = try Bench()
        for admission in admissions { try await alone.admit(admission) }
        let outcomes = try await bench.offer(admissions)
        #expect(outcomes.map(\.main) == (1...45).map { .admitted(id: $0) })
        #expect(try await jobs(bench) == jobs(alone))
        #expect(try await bench.journal.totals().mapValues(\.files) == alone.journal.totals().mapValues(\.files))
        #expect(try await bench.journal.totals().mapValues(\.bytes) == alone.journal.totals().mapValues(\.bytes))
        #expect(try await bench.journal.queueCounts() == alone.journal.queueCounts())
    }

    @Test func `files that want one key get numbered ones in their order`() async throws {
        let outcomes = try await bench.offer(Self.names.map { .test($0, key: "x.jpg") })
        #expect(try await keys(outcomes) == ["x.jpg"] + (2...45).map { "x_\($0).jpg" })
    }

    @Test func `a key that a file has, or had before it went to the history, is given to no file of many`() async throws
    {
        _ = try await bench.bury("past", key: Self.names[3])
        try await bench.admit("present", key: Self.names[35])
        let found = try await keys(try await bench.offer(Self.names.map { .test($0) }))
        var wanted = Self.names
        (wanted[3], wanted[35]) = ("d/103_2.bin", "d/135_2.bin")
        #expect(found == wanted)
    }

    @Test func `one of many that is known, refused or in use does not stop the others`() async throws {
        let known = try await bench.admit(Self.names[1])
        let earlier = try await bench.admit(Self.names[2], .test(size: 3))
        let held = try await bench.admit(Self.names[40], .test(size: 3))
        for _ in 1...2 { try await bench.settle(.test(.delivered)) }
        try await bench.hold { _ in
            var admissions = Self.names.map { FileAdmission.test($0) }
            admissions[30] = .refused(Self.names[30])
            let outcomes = try await bench.offer(admissions).map(\.main)
            #expect(outcomes[1] == .known(id: known))
            #expect(outcomes[2].newRow.map { $0 > earlier } == true)
            #expect(outcomes[40] == .busy(id: held))
            guard case .rejected = outcomes[30] else { throw Unexpected(what: "\(outcomes[30])") }
            // Rows are in the files' order, also around one that is inserted by itself.
            let rows = outcomes.compactMap(\.newRow)
            #expect(rows.count == 43 && rows == rows.sorted() && Set(rows).count == 43)
            return .test(.delivered)
        }
    }

    @Test func `a new content among many takes the key of the one that waits, whatever comes before it`() async throws {
        let old = try await bench.admit(Self.names[44], .test(size: 3), key: "x")
        var admissions = Self.names.map { FileAdmission.test($0) }
        admissions[0].plan?.key = "x"
        admissions[44].plan?.key = "x"
        let found = try await keys(try await bench.offer(admissions))
        #expect(try await bench.job(old).file.state == .superseded)
        #expect(found.first == "x_2" && found.last == "x")
    }

    @Test func `a path that comes twice in one transaction is admitted once`() async throws {
        let outcomes = try await bench.offer((Self.names + [Self.names[5]]).map { .test($0) })
        #expect(outcomes.last?.main == .known(id: 6))
        #expect(try await bench.journal.totals()[.pending]?.files == 45)
    }

    @Test func `the first of many fill the queue, and no later one overtakes`() async throws {
        let outcomes = try await bench.journal.admit(
            Self.names.map { .test($0) }, within: QueueLimit(files: 20, bytes: 185), at: Bench.start)
        // Ten bytes each.
        #expect(outcomes.map(\.main) == (1...18).map { .admitted(id: $0) } + Array(repeating: .full, count: 27))
    }
}

/// Questions about the paths of a listing, answered by ranges.
@Suite(.seated) struct PathRangeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// Each path asked alone is the answer that a range must give.
    private func expectSameAlone(_ arrivals: [FoundFile]) async throws {
        var alone: [KnownFile] = []
        for arrival in arrivals { alone += try await bench.recall([arrival]) }
        #expect(try await bench.recall(arrivals) == alone)
        #expect(Set(alone.map(\.isNew)) == [true, false])
    }

    @Test func `a range knows what each path alone knows, here and in the history`() async throws {
        _ = try await bench.bury("b/03")
        _ = try await bench.bury("b/05", .test(size: 11))
        try await bench.admit("b/01")
        try await bench.admit("b/04", .test(size: 3))
        try await bench.admit("b/04")
        try await bench.admit("b/05")
        try await bench.admit("b/07", .test(inode: 9))
        try await bench.admit("b/09", .test(size: 99))
        let names = (0..<12).map { "b/0\($0)" }.sorted()
        var arrivals = names.map { FoundFile.test($0) }
        arrivals.append(arrivals[3])
        arrivals[8].path = FilePath(bytes: [0x62, 0x2F, 0x30, 0x35, 0xFF])
        try await expectSameAlone(arrivals)
        try await expectSameAlone(arrivals.reversed())
        #expect(
            try await bench.recall(Array(arrivals[..<6])).map(\.isKnown) == [false, true, false, false, false, true])
    }

    @Test func `a range with a full folder between two names finds those behind it`() async throws {
        _ = try await bench.bury("m9")
        for number in 100..<200 { try await bench.admit("m5/\(number)") }
        try await bench.admit("m7")
        try await bench.admit("m8")
        try await expectSameAlone((0..<10).map { .test("m\($0)") })
    }

    @Test func `a range of one card knows nothing of another's`() async throws {
        func arrivals(_ key: String) -> [FoundFile] {
            (0..<8).map { number in
                FoundFile(
                    root: "/media/A", path: FilePath("\(number).jpg"), identity: .test(),
                    volume: Volume(name: "EOS", key: key))
            }
        }
        let plan = Plan(route: "all", category: "images", key: "k", mediaType: "image/jpeg", destinations: ["r2"])
        try await bench.offer(
            arrivals("uuid:1").map { FileAdmission($0, plan: plan, lanes: ["r2": .big], uptimes: ["r2": 0]) })
        #expect(try await bench.recall(arrivals("uuid:1")).allSatisfy(\.isKnown))
        #expect(try await bench.recall(arrivals("uuid:2")).allSatisfy(\.isNew))
        #expect(try await bench.recall((0..<8).map { .test("\($0).jpg") }).allSatisfy(\.isNew))
    }
}
