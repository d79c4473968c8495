import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// Who keeps the connections that destinations share.
struct FactoryClientTests {
    private let factory = PipelineFactory(pool: BlockingPool(name: "clients", threads: 1), userAgent: "inlet-tests/1")
    private let settings = DestinationSettings(
        name: "store", type: "folder", values: section(["path": .string("/tmp")]))

    @Test func `a client is shared for as long as somebody uses it, and no longer`() throws {
        defer { factory.shutdown() }
        var one: HTTPClient? = try factory.client(.system, connections: 40, of: settings)
        weak let kept = one
        #expect(try factory.client(.system, connections: 40, of: settings) === one)
        #expect(try factory.client(.system, connections: 41, of: settings) !== one)
        // One that a limit holds has the same connections.
        var limited: HTTPClient? = try factory.client(for: settings, .system, connections: 40)
        one = nil
        #expect(kept != nil && limited != nil)
        #expect(try factory.client(.system, connections: 40, of: settings) === kept)
        limited = nil
        #expect(kept == nil)
    }
}
