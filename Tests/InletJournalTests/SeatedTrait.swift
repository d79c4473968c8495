import InletTestSupport
import Testing

/// Lets no more than 48 tests of a process run at once. Side by side, hundreds of them would have thousands of files open, and
/// from about 1,360 on Foundation's `Process` reads past the end of its list of descriptors, and crashes.
struct SeatedTrait: TestTrait, SuiteTrait, TestScoping {
    private static let seats = Seats(48)

    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        await Self.seats.take()
        defer { Self.seats.leave() }
        try await function()
    }
}

extension Trait where Self == SeatedTrait {
    /// Takes its turn with all others that have files open.
    static var seated: Self { SeatedTrait() }
}
