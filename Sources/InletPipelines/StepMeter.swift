internal import InletCore
internal import Synchronization

/// The step that a delivery reported last.
final class StepMeter: Sendable {
    private let progress = Mutex<StepProgress?>(nil)

    var last: StepProgress? { progress.withLock { $0 } }
    func set(_ progress: StepProgress) { self.progress.withLock { $0 = progress } }
}
