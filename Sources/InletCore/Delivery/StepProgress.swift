/// How far a delivery is whose progress is more than bytes: the destination works on it, or on something made from it.
package struct StepProgress: Sendable, Hashable {
    /// 0 to 100, of the whole delivery.
    package var percent: Double
    /// What is being done, in a few words; may hold text of the destination's own.
    package var step: String

    package init(percent: Double, step: String) {
        self.percent = min(max(percent, 0), 100)
        self.step = step
    }
}
