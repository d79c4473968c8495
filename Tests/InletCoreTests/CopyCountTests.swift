import InletCore
import Testing

struct CopyCountTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let disks: [Set<String>]
        let copies: Int
        var shared: [[String]] = []
        var testDescription: String { "\(disks.map { $0.sorted() }) \(copies)" }
    }

    private static let unknown: Set<String> = []

    @Test(arguments: [
        Row(disks: [], copies: 0),
        Row(disks: [["disk sda"]], copies: 1),
        Row(disks: [unknown], copies: 1),
        Row(disks: [["disk sda"], ["disk sdb"]], copies: 2),
        Row(disks: [["disk sda"], ["disk sda"]], copies: 1, shared: [["0", "1"]]),
        Row(
            disks: [["disk sda", "disk sdb"], ["disk sdb"], ["disk sda"]], copies: 2,
            shared: [["0", "1"], ["0", "2"]]),
        Row(disks: [["server nas"], ["disk sda"]], copies: 2),
        Row(disks: [["server nas", "server 10.0.0.2"], ["server 10.0.0.2"]], copies: 1, shared: [["0", "1"]]),
        // What nobody knows may be on any disk here, and is on no other machine.
        Row(disks: [unknown, ["disk sda"]], copies: 1, shared: [["0", "1"]]),
        Row(disks: [unknown, ["server nas"]], copies: 2),
        Row(disks: [unknown, unknown, ["server nas"]], copies: 2, shared: [["0", "1"]]),
    ])
    func `copies count by their disks`(_ row: Row) {
        let found = CopyCount.count(row.disks.enumerated().map { ("\($0.offset)", $0.element) })
        #expect(found.copies == row.copies)
        #expect(found.shared.map(\.names) == row.shared)
    }

    @Test func `destinations that share several disks are named once`() throws {
        let both: Set<String> = ["disk sda (WDC)", "disk sdb"]
        let shared = try #require(CopyCount.count([("lib", both), ("old", []), ("lib2", both)]).shared.first)
        #expect(shared.text == "'lib' and 'lib2' share disk sda (WDC), disk sdb: they are one copy")
        let unknown = CopyCount.count([("lib", ["disk sda"]), ("a", []), ("b", ["disk sdb"])]).shared
        #expect(
            unknown.map(\.text) == [
                "'lib', 'a' and 'b' may share a disk, which Inlet cannot tell: they count as one copy"
            ])
    }

    @Test(
        arguments: [
            ("NAS.local", ["server nas.local"]), ("s3.example.com", ["server s3.example.com"]), ("localhost", []),
            ("127.0.0.5", []), ("::1", []), ("studio", []), ("10.0.0.2", ["server 10.0.0.2"]),
        ] as [(String, Set<String>)])
    func `a service on this machine has none of its own disks`(_ host: String, _ disks: Set<String>) {
        #expect(CopyCount.disks(ofServer: host, localNames: ["studio"]) == disks)
    }

    @Test(arguments: 0..<200) func `no two of the copies share a disk, and never more are counted`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let destinations: [CopyCount.Destination] = (0..<Int.random(in: 1...16, using: &random)).map { number in
            let disks = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                ["disk a", "disk b", "disk c", "disk d", "server n", "memory"].randomElement(using: &random) ?? ""
            }
            return ("\(number)", Set(disks))
        }
        let copies = CopyCount.count(destinations).copies
        let names = Set(destinations.flatMap(\.disks)).count + (destinations.contains { $0.disks.isEmpty } ? 1 : 0)
        #expect((1...names).contains(copies))
        // The largest set of all, found by trying them all.
        var most = 0
        for choice in 0..<(1 << destinations.count) where choice.nonzeroBitCount > most {
            let chosen = destinations.indices.filter { choice >> $0 & 1 == 1 }.map { destinations[$0] }
            if CopyCount.count(chosen).shared.isEmpty { most = choice.nonzeroBitCount }
        }
        if destinations.count <= 12 { #expect(copies == most) } else { #expect(copies <= most) }
    }
}

struct SourceSampleTests {
    @Test(arguments: [(0, 0), (1, 1), (2, 2), (3, 3), (8, 3), (17, 3), (800, 100)])
    func `one file in eight is read, and at least three`(_ count: Int, _ least: Int) {
        for seed in 0..<50 {
            let chosen = SourceSample.choose([Int64](repeating: 5, count: count), seed: "\(seed)")
            #expect(chosen.count >= least && chosen.count <= max(3, (count + 7) / 8 + 2))
            #expect(chosen.allSatisfy { (0..<count).contains($0) })
        }
    }

    @Test(arguments: 0..<100) func `the biggest and the last are among them, and eight in a row never miss`(
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        let sizes = (0..<Int.random(in: 1...400, using: &random)).map { _ in
            Int64.random(in: 0...1 << 40, using: &random)
        }
        let chosen = SourceSample.choose(sizes, seed: "\(seed)")
        #expect(chosen.contains(sizes.count - 1))
        #expect(chosen.contains(try #require(sizes.firstIndex(of: sizes.max() ?? 0))))
        for start in stride(from: 0, to: sizes.count, by: 8) {
            #expect((start..<min(start + 8, sizes.count)).contains(where: chosen.contains))
        }
        #expect(chosen == SourceSample.choose(sizes, seed: "\(seed)"))
    }

    @Test func `another seed chooses others`() {
        let sizes = [Int64](repeating: 1, count: 400)
        let all = (0..<20).map { SourceSample.choose(sizes, seed: "card \($0)") }
        #expect(Set(all).count == 20)
    }
}

struct ReadPaceTests {
    @Test func `the slowest second counts, and a short read has none`() {
        var pace = ReadPace()
        pace.add(1000, in: .milliseconds(999))
        #expect(pace.slowest == nil)
        pace.add(1000, in: .milliseconds(1))
        #expect(pace.slowest == 2000)
        pace.add(500, in: .milliseconds(500))
        #expect(pace.slowest == 2000)
        pace.add(100, in: .milliseconds(1500))
        #expect(pace.slowest == 300)
        pace.add(9000, in: .seconds(1))
        #expect(pace.slowest == 300)
    }
}
