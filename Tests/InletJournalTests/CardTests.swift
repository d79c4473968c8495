import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

@Suite struct CardTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func card(_ number: Int, label: String? = "UNTITLED") async throws -> CardRow {
        let identity = VolumeIdentity(kind: "vfat", uuid: "0000-000\(number)", label: label)
        return try await bench.journal.card(identity, key: identity.key, weaker: identity.weakerKeys, at: .now)
    }

    @Test func `a second card of the same label has a name of its own for ever, whichever comes first`() async throws {
        try await #expect(card(1).name == "UNTITLED")
        try await #expect(card(2).name == "UNTITLED (2)")
        try await #expect(card(3).name == "UNTITLED (3)")
        try await #expect(card(2).name == "UNTITLED (2)")
        try await #expect(card(1).name == "UNTITLED")
        try await #expect(card(4, label: nil).name == "0000-0004")
    }

    @Test func `a card whose UUID becomes known later keeps its name`() async throws {
        let weak = VolumeIdentity(kind: "vfat", label: "EOS", source: "/dev/sdb1")
        let first = try await bench.journal.card(weak, key: weak.key, weaker: weak.weakerKeys, at: .now)
        let stay = try await bench.journal.insertion(of: first.id, at: "/media/A", isNew: true, now: .now)
        var known = weak
        known.uuid = "1234-ABCD"
        let second = try await bench.journal.card(known, key: known.key, weaker: known.weakerKeys, at: .now)
        #expect(second.id == first.id && second.name == "EOS" && second.uuid == "1234-ABCD")
        try await bench.journal.endInsertion(stay.id, at: .now)
        // Another card of that label is another card.
        var other = weak
        other.uuid = "9999-0000"
        let third = try await bench.journal.card(other, key: other.key, weaker: other.weakerKeys, at: .now)
        #expect(third.id != first.id && third.name == "EOS (2)")
    }

    @Test func `a label that is known from a card that went is another card's`() async throws {
        let weak = VolumeIdentity(kind: "vfat", label: "EOS", source: "/dev/sdb1")
        let first = try await bench.journal.card(weak, key: weak.key, weaker: weak.weakerKeys, at: .now)
        let stay = try await bench.journal.insertion(of: first.id, at: "/media/A", isNew: true, now: .now)
        try await bench.journal.endInsertion(stay.id, at: .now)
        var known = weak
        known.uuid = "1234-ABCD"
        let second = try await bench.journal.card(known, key: known.key, weaker: known.weakerKeys, at: .now)
        #expect(second.id != first.id && second.name == "EOS (2)")
    }

    @Test func `a name in the keys of files from before there were cards is taken, but for the card of those files`()
        async throws
    {
        let old = "uuid:0000-0001"
        var admission = FileAdmission.test("a.jpg", key: "UNTITLED/a.jpg")
        admission.arrival.volume = Volume(name: "UNTITLED", key: old + "/DCIM")
        _ = try await bench.admit(admission)
        try await #expect(card(2).name == "UNTITLED (2)")
        try await #expect(card(1).name == "UNTITLED")
        try await #expect(card(3).name == "UNTITLED (3)")
    }

    @Test func `a stay goes on after a restart, and a new one begins when somebody saw the card come`() async throws {
        let card = try await card(1)
        let first = try await bench.journal.insertion(of: card.id, at: "/media/A", isNew: true, now: .now)
        try await bench.journal.setLabels(CardLabels(roll: "A001"), of: first.id)
        let again = try await bench.journal.insertion(of: card.id, at: "/media/B", isNew: false, now: .now)
        #expect(again.id == first.id && again.mount == "/media/B" && again.labels.roll == "A001")
        let next = try await bench.journal.insertion(of: card.id, at: "/media/A", isNew: true, now: .now)
        #expect(next.id != first.id && next.labels == CardLabels())
        try await bench.journal.endInsertion(next.id, at: .now)
        let stays = try await bench.journal.insertions(of: "untitled-no-such", limit: 10)
        #expect(stays.isEmpty)
        let all = try await bench.journal.insertions(of: "UNTITLED", limit: 10)
        #expect(all.map(\.id) == [next.id, first.id] && all.allSatisfy { $0.removedAt != nil })
        try await #expect(bench.journal.insertions(of: "0000-0001", limit: 10).count == 2)
        try await #expect(bench.journal.rolls(limit: 10) == ["A001"])
    }

    @Test func `read errors are kept over a card's life`() async throws {
        let card = try await card(1)
        _ = try await bench.journal.addErrors(card.id, reads: 2, slow: 1, at: .now)
        let errors = try await bench.journal.addErrors(card.id, reads: 1, slow: 0, at: .now)
        #expect(errors.reads == 3 && errors.slow == 1 && errors.lastRead != nil)
        try await #expect(self.card(1).errors == errors)
    }
}
