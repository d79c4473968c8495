import InletCore
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct IntakePlanTests {
    private static let (one, two) = (WatchSettings(path: "/one"), WatchSettings(path: "/two"))

    private static func plan(
        _ old: [WatchSettings], _ new: [WatchSettings], isRouted: Bool = false
    ) -> (ends: [FilePath], begins: [FilePath], renews: [FilePath]) {
        let plan = IntakePlan(from: old, to: new, isRouted: isRouted)
        return (plan.ends, plan.begins.map(\.path), plan.renews)
    }

    @Test func `only what has changed ends or begins`() {
        #expect(Self.plan([Self.one, Self.two], [Self.two, Self.one]) == ([], [], []))
        #expect(Self.plan([Self.one], [Self.one, Self.two]) == ([], ["/two"], []))
        #expect(Self.plan([Self.one, Self.two], [Self.two]) == (["/one"], [], []))
        var other = Self.one
        other.settle = .seconds(60)
        #expect(Self.plan([Self.one, Self.two], [other, Self.two]) == (["/one"], ["/one"], []))
    }

    @Test func `other routes have every folder listed anew, and those of a pattern in their place`() throws {
        var cards = WatchSettings(path: "/media/*/DCIM")
        cards.pattern = try RootPattern(cards.path)
        #expect(Self.plan([Self.one, cards], [Self.one, cards], isRouted: true) == (["/one"], ["/one"], [cards.path]))
    }
}
