internal import InletTransfer

extension Attempt {
    /// Whether it waits for bytes under a limit at this moment.
    package var isHeld: Bool { note.isHeld }

    /// Runs `body`, whose requests `isHeld` is about.
    package func noting<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        await HoldNote.$current.withValue(note) { await body() }
    }
}
