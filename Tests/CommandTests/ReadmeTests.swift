import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// What the README tells a newcomer to type does what the README says.
@Suite struct ReadmeTests {
    private static func readme() throws -> String {
        try String(contentsOfFile: Repository.root.appending("README.md").string, encoding: .utf8)
    }

    /// The first fenced block of a kind below a heading.
    private static func block(_ kind: String, below heading: String) throws -> String {
        let chapter = try #require(readme().components(separatedBy: "\n## \(heading)\n").dropFirst().first)
        let fenced = try #require(chapter.components(separatedBy: "```\(kind)\n").dropFirst().first)
        return try #require(fenced.components(separatedBy: "```").first)
    }

    @Test func `the configuration of 10 lines has 10, is read, and routes the file below it`() async throws {
        let yaml = try Self.block("yaml", below: "A configuration of 10 lines")
        #expect(yaml.split(separator: "\n").count == 10)
        let place = try Place()
        let home = place.folder.path.string
        try place.configure(text: "state_dir: state\n" + yaml.replacing("~/Drop", with: home + "/drop"))
        let commands = try Self.block("sh", below: "A configuration of 10 lines").split(separator: "\n")
        let line = try #require(commands.first { $0.hasPrefix("inlet route ") })
        let file = try #require(line.split(separator: " ").first { $0.hasPrefix("~/") })
        try place.put(FilePath(String(file.dropFirst("~/Drop/".count))), bytes(100))
        let answer = try await place.inlet(
            ["route", home + "/drop" + file.dropFirst("~/Drop".count)], environment: ["SPIRAL_KEY": "secret"], code: 0,
            says: "route videos takes it")
        #expect(answer.output.firstMatch(of: /videos\/\d{4}\/\d{2}\/song\.mp4/) != nil, "\(answer)")
    }

    /// As a user without rights: root's own files are elsewhere.
    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `the first delivery needs the commands of its chapter, and no others`() async throws {
        let steps = try Self.block("sh", below: "Your first delivery").trimmingCharacters(in: .whitespacesAndNewlines)
        let folder = try TemporaryDirectory()
        let home = folder.path
        try Nobody.own(home)
        func start(_ words: [String]) throws -> InletProcess {
            try InletProcess(words, in: home, launcher: Nobody.launcher)
        }
        func done(_ words: String...) async throws -> InletProcess {
            let process = try start(words)
            #expect(try await process.ending() == .code(0), "\(words): \(process.output) \(process.errors)")
            return process
        }
        // The shell's part of it.
        let words = steps.replacing("~", with: home.string).split(separator: " ").map(String.init)
        #expect(words.starts(with: ["inlet", "init", "--watch", "\(home)/Drop"]))
        let made = try start(Array(words.dropFirst()))
        #expect(try await made.ending() == .code(0), "\(made.output) \(made.errors)")
        // 1: it has something to warn of on most machines, and says what.
        let checked = try start(["check"])
        #expect([.code(0), .code(1)].contains(try await checked.ending()), "\(checked.output) \(checked.errors)")
        #expect(!checked.output.contains("✗"), "\(checked.output)")
        let agent = try start(["run"])
        try await agent.line("agent.ready")
        try folder.write(bytes(1000), to: "Drop/picture.jpg")
        try Nobody.own(home.appending("Drop"))
        try await agent.line("job.finished") { $0.isAbout("picture.jpg") && $0["state"] == "delivered" }
        let status = try await done("status")
        #expect(status.output.contains("All is well") && status.output.contains("delivered"), "\(status.output)")
        #expect(try await done("queue", "show", "1").output.contains("picture.jpg"))
        let copies = FileManager.default.enumerator(atPath: home.appending("Library").string)?.compactMap {
            $0 as? String
        }
        #expect(copies?.contains { $0.hasSuffix("picture.jpg") } == true, "\(copies ?? [])")
        #expect(try await agent.stop() == .code(0))
    }
}
