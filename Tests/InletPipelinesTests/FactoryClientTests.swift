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

    @Test func `a destination is where its bucket is, however that is reached, and elsewhere in another one`() throws {
        defer { factory.shutdown() }
        func address(_ endpoint: String, _ bucket: String = "media", style: String = "path") throws -> String {
            let values: [String: ConfigValue] = [
                "endpoint": .string(endpoint), "bucket": .string(bucket), "style": .string(style),
                "allow_http": .boolean(true), "access_key": .secret(Secret("a")), "secret_key": .secret(Secret("b")),
            ]
            let made = try factory.make(DestinationSettings(name: "store", type: "s3", values: section(values)))
            return try #require(made.address)
        }
        let here = try address("https://store.example")
        #expect(try address("https://store.example/") == here)
        #expect(try address("http://store.example") == here)
        #expect(try address("https://store.example", style: "virtual") == here)
        #expect(try address("https://store.example", "other") != here)
        #expect(try address("https://other.example") != here)
        #expect(try address("https://store.example:9000") != here)
        let folder = try #require(try factory.make(settings).address)
        #expect(folder != here && folder.count == here.count)
    }
}
