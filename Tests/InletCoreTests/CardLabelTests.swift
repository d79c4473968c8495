import InletCore
import Testing

struct CardLabelTests {
    @Test(
        arguments: [
            ("A003", "A004"), ("A009", "A010"), ("A999", "A1000"), ("7", "8"), ("B-12", "B-13"),
            ("cam 2 099", "cam 2 100"),
            ("000", "001"), ("R1_A000000003", "R1_A000000004"), ("A", nil), ("", nil), ("A003B", nil), ("A٣", nil),
            ("20261127101500", nil),
        ] as [(String, String?)])
    func `the next roll counts on, with its prefix and its width`(roll: String, next: String?) {
        #expect(CardLabels.next(after: roll) == next)
    }

    @Test(arguments: [
        (["A001", "A003"], ["A002"]), (["A003", "A001"], ["A002"]), (["A001", "A002", "A002"], []),
        (["A008", "A011"], ["A009", "A010"]), (["A001", "B001", "A003", "B004"], ["A002", "B002", "B003"]),
        (["A001"], []), ([], []), (["A1", "night", ""], []),
        (["A001", "A022"], (2...21).map { $0 < 10 ? "A00\($0)" : "A0\($0)" }),
        // Another series begins.
        (["A001", "A023"], []), (["A001", "A101", "A103"], ["A102"]), (["20260101", "20261127"], []),
    ])
    func `a gap between rolls of one prefix is found`(rolls: [String], gaps: [String]) {
        #expect(CardLabels.gaps(in: rolls) == gaps)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `rolls that follow each other have no gap, and one that is left out is the gap`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let prefix = ["A", "B-", "", "cam 1 "].randomElement(using: &random) ?? ""
        var rolls = [prefix + String(Int.random(in: 0...1200, using: &random))]
        for _ in 0..<15 { rolls.append(try #require(CardLabels.next(after: rolls[rolls.count - 1]))) }
        #expect(CardLabels.gaps(in: rolls.shuffled(using: &random)).isEmpty)
        let gap = rolls.remove(at: Int.random(in: 1..<15, using: &random))
        #expect(CardLabels.gaps(in: rolls.shuffled(using: &random)) == [gap])
    }

    @Test func `labels lose white space at their ends, and empty ones do not count`() throws {
        let labels = CardLabels(roll: "  A001\n", camera: " ", operator: "Ana María", note: "23.976/25 fps")
        let expected = CardLabels(roll: "A001", operator: "Ana María", note: "23.976/25 fps")
        #expect(try labels.validated() == expected)
        #expect(CardLabels.Field.allCases.map { expected[$0] } == ["A001", nil, "Ana María"])
    }

    @Test(arguments: [
        (CardLabels(roll: "A/1"), "remove '/' from the roll"), (CardLabels(camera: "A\u{7}1"), "from the camera"),
        (CardLabels(operator: "a\nb"), "remove line breaks"), (CardLabels(roll: "A\u{202E}1"), "invisible"),
        (CardLabels(roll: String(repeating: "x", count: 65)), "shorten the roll to 64 characters; it has 65"),
        (CardLabels(roll: ".."), "choose another roll"), (CardLabels(note: "a\u{0}b"), "from the note"),
        (CardLabels(note: String(repeating: "x", count: 501)), "shorten the note to 500"),
    ])
    func `a label that cannot be a name is refused with its remedy`(labels: CardLabels, remedy: String) throws {
        let error = try #require(throws: PatternError.self) { try labels.validated() }
        #expect(error.message.contains(remedy), "\(error)")
        #expect(try CardLabels(roll: String(repeating: "é", count: 64)).validated().roll?.count == 64)
    }
}
