import InletCore
import Testing

@Suite struct DeliveryStepsTests {
    private typealias Step = DeliverySteps.Step

    @Test(
        arguments: [
            (["a", "b"], [:], [Step("a"), Step("b")]),
            (["spaces"], ["spaces": "spiral"], [Step("spiral"), Step("spaces", after: "spiral")]),
            (["spaces", "spiral"], ["spaces": "spiral"], [Step("spiral"), Step("spaces", after: "spiral")]),
            (
                ["disk", "one", "two"], ["one": "spiral", "two": "spiral"],
                [Step("disk"), Step("spiral"), Step("one", after: "spiral"), Step("two", after: "spiral")]
            ),
            // Whatever a configuration says, nothing waits for itself, or in a circle.
            (["a"], ["a": "a"], [Step("a")]),
            (["a", "b"], ["a": "b", "b": "a"], [Step("a"), Step("b")]),
            ([], ["a": "b"], []),
        ] as [([String], [String: String], [DeliverySteps.Step])])
    func `each destination comes once, and after what it waits for`(
        destinations: [String], storages: [String: String], steps: [DeliverySteps.Step]
    ) {
        let made = DeliverySteps(destinations, storages: storages)
        #expect(made.steps == steps)
        #expect(made.destinations == steps.map(\.destination))
        #expect(made.first == steps.filter { $0.after == nil }.map(\.destination))
    }

    @Test(arguments: [(-3.0, 0.0), (0, 0), (42.5, 42.5), (100, 100), (1e9, 100)])
    func `a percentage stays one`(given: Double, percent: Double) {
        #expect(StepProgress(percent: given, step: "s").percent == percent)
    }
}
