import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// `inlet demo --fleet`.
@Suite(.serialized) struct FleetDemoTests {
    /// The processes that name one of these paths on their command line.
    private static func processes(naming paths: [String]) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { Int32($0) != nil }.filter { number in
            // It may have ended meanwhile.
            guard let words = try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(number)/cmdline")) else {
                return false
            }
            let text = String(decoding: words, as: UTF8.self)
            return paths.contains { text.contains($0) }
        }
    }

    private static func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test(.enabled(if: PostgresCluster.isThere, FleetScene.reason))
    func `equal names of three agents arrive under keys of their own, and nothing is left`() async throws {
        let folder = try TemporaryDirectory()
        let base = folder.path.appending("demo")
        let demo = try await InletProcess.run(
            ["demo", "--fleet", "--once", "--dir", base.string], in: folder.path, code: 0,
            says: "9 files arrived, each under a key of its own", "Which machine has interview.mov?", "station-3",
            "Both files of the share arrived once, equal to their sources")
        // The agent that was killed is not the one that goes on, and that one sends only what was missing: nothing where
        // a busy machine has killed it late.
        let text = /(station-\d) was killed while it sent clip\.mov; (station-\d) lists the share \d+ s later/
        let story = try #require(demo.output.firstMatch(of: text), "\(demo.output)")
        #expect(demo.output.contains(/sent the rest: (1 part|0 parts) of 4/), "\(demo.output)")
        #expect(story.1 != story.2 && demo.output.contains("\(story.1) runs again"))
        #expect(!demo.output.contains("✗"), "\(demo.output)")
        #expect(!Self.isThere(base.string))
        #expect(try Self.processes(naming: [base.string]).isEmpty)
    }

    @Test(.enabled(if: PostgresCluster.isThere, FleetScene.reason))
    func `a killed demo takes its programs along, and the next one removes what it left`() async throws {
        let folder = try TemporaryDirectory()
        let base = folder.path.appending("demo").string
        let killed = try InletProcess(["demo", "--fleet", "--dir", base], in: folder.path)
        try await killed.wait("the invitation", within: .seconds(300)) {
            killed.output.contains("Ctrl-C ends the demo")
        }
        #expect(killed.output.contains(/The page of station-1: \S*http:\/\/127\.0\.0\.1:\d+\//), "\(killed.output)")
        let cluster = try String(contentsOfFile: base + "/cluster", encoding: .utf8)
        #expect(Self.isThere(cluster + "/data"))
        // A second one in the same place leaves it alone.
        try await InletProcess.run(
            ["demo", "--fleet", "--dir", base], in: folder.path, code: 75, errors: "another 'inlet demo --fleet' runs")
        try await killed.kill()
        try await eventually("the end of its programs") { try Self.processes(naming: [base, cluster]).isEmpty }
        #expect(Self.isThere(cluster) && Self.isThere(base))
        let next = try InletProcess(["demo", "--fleet", "--dir", base], in: folder.path)
        try await next.wait("the agents") { next.output.contains("station-3 has joined") }
        #expect(!Self.isThere(cluster))
        let other = try String(contentsOfFile: base + "/cluster", encoding: .utf8)
        next.signal(SIGINT)
        #expect(try await next.ending() == .code(0))
        #expect(!Self.isThere(other) && !Self.isThere(base))
        #expect(try Self.processes(naming: [base, other]).isEmpty)
    }

    @Test func `a folder with files of others is refused, and left as it is`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("mine".utf8, to: "demo/letter.txt")
        try await InletProcess.run(
            ["demo", "--fleet", "--dir", file.removingLastComponent().string], in: folder.path, code: 78,
            errors: "has other files in it", "--dir DIR")
        #expect(Self.isThere(file.string))
    }
}
