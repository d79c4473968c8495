import InletTestSupport
import SystemPackage
import Testing

/// What somebody sees who has just built Inlet.
@Suite(.timeLimit(.minutes(8))) struct DemoTests {
    @Test func `the demo makes pictures of a video, registers a model, and compares every byte`() async throws {
        let folder = try TemporaryDirectory()
        let demo = try InletProcess(
            ["demo", "--once", "--dir", folder.path.appending("demo").string], in: folder.path)
        #expect(try await demo.ending(within: .seconds(300)) == .code(0), "\(demo.errors)")
        for part in [
            "→ picture,", "→ data of the product", "→ model of space 'atrium'", "→ preview of space 'atrium'",
            "compared byte for byte: all equal",
        ] {
            #expect(demo.output.contains(part), "\(part) is missing in:\n\(demo.output)")
        }
    }
}
