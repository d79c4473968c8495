import InletTestSupport
import Testing

@testable import InletCore

@Suite struct CardVerdictTests {
    /// A card of four files that are all proved at one destination.
    private static func facts(_ change: (inout CardFacts) -> Void = { _ in }) -> CardFacts {
        var facts = CardFacts()
        var nas = CardPlace(name: "nas")
        (nas.files, nas.proved) = (4, 4)
        (facts.stage, facts.files, facts.bytes, facts.accounted, facts.places) = (.known, 4, 400, 4, [nas])
        change(&facts)
        return facts
    }

    private static func rules(_ change: (inout CardRules) -> Void = { _ in }) -> CardRules {
        var rules = CardRules()
        change(&rules)
        return rules
    }

    static let others = OtherFiles(reason: .outside, files: 2, bytes: 20, folders: ["MISC"])

    static let table: [(CardFacts, CardRules, CardVerdict)] = [
        (facts(), rules(), .safe),
        (facts { $0.stage = .asking }, rules(), .notYet(files: 0)),
        (facts { ($0.open, $0.accounted) = (3, 1) }, rules(), .notYet(files: 3)),
        (facts { $0.unmarked = 1 }, rules(), .notYet(files: 1)),
        (facts { ($0.failed, $0.accounted) = (1, 3) }, rules(), .callSomebody("1 file was not delivered")),
        (facts { $0.unread = 2 }, rules(), .callSomebody("2 files or folders cannot be read")),
        (
            facts {
                ($0.accounted, $0.places[0].proved, $0.places[0].missing) = (1, 1, 3)
            }, rules(), .callSomebody("3 files are no longer at nas: send again?")
        ),
        (facts { ($0.accounted, $0.places[0].proved, $0.places[0].silent) = (0, 0, 4) }, rules(), .notYet(files: 4)),
        (
            facts {
                ($0.accounted, $0.places[0].proved, $0.places[0].unconfirmed) = (0, 0, 4)
                $0.places[0].reason = "it is not in the configuration"
            }, rules(), .callSomebody("nas cannot confirm 4 files: it is not in the configuration")
        ),
        // Others have enough copies.
        (facts { ($0.places[0].proved, $0.places[0].unconfirmed) = (0, 4) }, rules(), .safe),
        (
            facts { ($0.accounted, $0.short, $0.copies) = (0, 4, 2) }, rules { $0.copies = 2 },
            .callSomebody("4 files have fewer copies than 2")
        ),
        (facts { ($0.files, $0.others) = (6, [others]) }, rules(), .othersLeft(files: 2)),
        (facts { ($0.files, $0.others, $0.othersMayStay) = (6, [others], true) }, rules(), .safe),
        (facts { ($0.files, $0.others) = (6, [others]) }, rules { $0.counts = .routed }, .safe),
        (facts { ($0.places[0].proved, $0.places[0].sized) = (0, 4) }, rules(), .unverified),
        (facts { ($0.places[0].proved, $0.places[0].sized) = (0, 4) }, rules { $0.acceptsSize = true }, .safe),
        (facts { $0.isWhole = false }, rules(), .callSomebody("not everything on it can be listed")),
        (
            facts { $0.source = .differs(["a.mov"]) }, rules(),
            .callSomebody(
                "1 file reads differently the second time, or differs from the card's checksum list: a.mov")
        ),
        (
            facts { $0.unchecked = 2 }, rules { $0.secondRead = .reread },
            .callSomebody(
                "2 files have no checksum for the second read: use 'verify' with one, or source_check: off")
        ),
        (CardFacts(), rules(), .notYet(files: 0)),
        (facts { ($0.files, $0.accounted, $0.places) = (0, 0, []) }, rules(), .empty),
        (facts { $0.isUnknown = true }, rules(), .unknown(files: 4)),
        (facts { ($0.isPulled, $0.open) = (true, 3) }, rules(), .pulled(files: 3)),
        (facts { $0.isPulled = true }, rules(), .pulled(files: 0)),
        // Before everything is taken in, more may be missing than what waits.
        (facts { ($0.isPulled, $0.stage, $0.open, $0.accounted) = (true, .copying, 1, 0) }, rules(), .pulled(files: 4)),
        (
            facts { ($0.isPulled, $0.stage, $0.open, $0.isTakenIn) = (true, .copying, 1, true) }, rules(),
            .pulled(files: 1)
        ),
        (facts { $0.isOut = true }, rules(), .out),
        // More on it than anybody has counted.
        (facts { $0.files = 5 }, rules(), .notYet(files: 1)),
    ]

    @Test(arguments: table.indices) func `a card is what its facts are`(_ row: Int) {
        let (facts, rules, verdict) = Self.table[row]
        #expect(CardVerdict(facts, rules) == verdict)
        #expect(CardVerdict(facts, rules).isSafe == [.safe, .empty, .out].contains(verdict))
    }

    @Test func `a card is never safe while one of its files is not accounted for`() {
        var random = SeededGenerator(seed: 27)
        var safe = 0
        for _ in 0..<20_000 {
            func few() -> Int { [0, 0, 0, 1, 2].randomElement(using: &random) ?? 0 }
            var (facts, rules) = (CardFacts(), CardRules())
            facts.stage = Bool.random(using: &random) ? .known : .asking
            (facts.open, facts.failed, facts.short, facts.unmarked, facts.unread) = (few(), few(), few(), few(), few())
            facts.accounted = Int.random(in: 0...5, using: &random)
            let others = few()
            if others > 0 { facts.others = [OtherFiles(reason: .unrouted, files: others)] }
            facts.othersMayStay = Bool.random(using: &random)
            facts.files = facts.accounted + others + facts.open + facts.failed + facts.short + few()
            var place = CardPlace(name: "nas")
            (place.missing, place.silent, place.sized, place.unconfirmed) = (few(), few(), few(), few())
            facts.places = [place]
            facts.isWhole = Bool.random(using: &random)
            if Bool.random(using: &random) { rules.counts = .routed }
            guard CardVerdict(facts, rules) == .safe else { continue }
            safe += 1
            #expect(facts.accounted + others == facts.files && facts.isWhole && facts.stage == .known)
            #expect(facts.open + facts.failed + facts.short + facts.unmarked + facts.unread + place.sized == 0)
            #expect(others == 0 || facts.othersMayStay || rules.counts == .routed)
        }
        #expect(safe > 20)
    }

    @Test func `the list below a verdict says each place with its proof, and every fault`() {
        let facts = Self.facts {
            ($0.places[0].proved, $0.places[0].missing, $0.accounted) = (2, 2, 2)
            $0.places[0].askedAt = WallTime(milliseconds: 0)
            $0.others = [Self.others]
            $0.readErrors = CardErrors(reads: 3, lastRead: WallTime(milliseconds: 0))
        }
        let lines = facts.lines(CardRules(), identity: "UUID 1234-ABCD") { _ in "12:59" }
        #expect(lines.contains(CardLine(.bad, "at nas 2 of 4: 2 missing, asked 12:59")), "\(lines)")
        #expect(lines.contains(CardLine(.bad, "2 files, 20 bytes, outside of the watched folder: in MISC")))
        #expect(lines.contains(CardLine(.good, "the card is the one that was read (UUID 1234-ABCD)")))
        #expect(lines.contains(CardLine(.note, "3 read errors, the last on 12:59: replace the card")))
        let fine = Self.facts().lines(CardRules(), identity: "UUID 1234-ABCD") { _ in "12:59" }
        #expect(fine.first == CardLine(.good, "everything on the card is accounted for: 4 files, 400 bytes"))
        #expect(fine.contains(CardLine(.good, "at nas 4 of 4, proved")))
        #expect(fine.contains(CardLine(.good, "read errors 0")))
    }

    @Test func `files that wait for their marker have one line, and what was not looked into is said`() {
        let facts = Self.facts {
            ($0.files, $0.unmarked, $0.others) = (5, 1, [OtherFiles(reason: .unrouted, files: 1)])
            ($0.systemFiles, $0.hasClosedLostFound) = (2, true)
        }
        let texts = facts.lines(CardRules(), identity: "x") { _ in "" }.map(\.text)
        #expect(texts.contains("1 file waits for its marker") && !texts.contains { $0.contains("no route") })
        #expect(texts.contains("not counted: 2 files of operating systems, such as .DS_Store"))
        #expect(texts.contains("not looked into: lost+found, which only root may list"))
    }

    @Test func `equal sizes are never called a proof`() {
        let facts = Self.facts { ($0.places[0].proved, $0.places[0].sized) = (0, 4) }
        let lines = facts.lines(CardRules(), identity: "x") { _ in "" }
        #expect(lines.contains(CardLine(.bad, "at nas 4 of 4, copied, sizes equal, not verified")))
        #expect(!CardVerdict(facts, CardRules()).headline.contains("proved"))
    }
}
