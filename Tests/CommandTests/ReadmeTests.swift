import Foundation
import InletLinux
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

/// What contributors read about failpoints is what there is.
struct FailpointTableTests {
    @Test func `CONTRIBUTING lists every failpoint, in order, with its meaning`() throws {
        let page = Repository.root.pushing(".github/CONTRIBUTING.md")
        let text = try String(contentsOfFile: page.string, encoding: .utf8)
        let table = text.split(separator: "\n").drop { $0 != "## Failpoints" }.dropFirst()
            .prefix { !$0.hasPrefix("## ") }
        let rows = table.filter { $0.hasPrefix("| `") }.map(String.init)
        #expect(Failpoint.allCases.allSatisfy { !$0.meaning.isEmpty })
        #expect(rows == Failpoint.allCases.map { "| `\($0.rawValue)` | \($0.meaning) |" })
    }

    @Test func `a test dies at every failpoint`() throws {
        let points = CrashKind.allCases.flatMap(\.points) + CrashPoints.allCases.flatMap(\.list)
        let names = Set(points.map { String($0.prefix { $0 != ":" }) })
        #expect(names == Set(Failpoint.allCases.map(\.rawValue)))
        // A list that no test goes through would be no proof.
        let folder = Repository.root.appending("Tests").appending("CommandTests")
        let tests = try FileManager.default.contentsOfDirectory(atPath: folder.string)
            .filter { $0.hasSuffix("Tests.swift") }
            .map { try String(contentsOfFile: folder.appending($0).string, encoding: .utf8) }.joined()
        let used = Set(tests.components(separatedBy: "CrashPoints.").dropFirst().map { $0.prefix(while: \.isLetter) })
        for list in CrashPoints.allCases {
            let isUsed = used.contains(list.rawValue[...])
            #expect(isUsed && !list.list.isEmpty, "\(list)")
        }
    }
}

/// The examples of `config/examples` do what their comments say: `# route: FILE -> what becomes of it`.
///
/// The places that an example names (`~/`, `/srv`, `/media` …) are put below a folder of the test's own, in the whole text.
/// `*` in a comment stands for what differs from file to file. Each file is there, with one date.
@Suite struct ExampleTests {
    private static let folder = Repository.root.appending("config").appending("examples")

    private static let files =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []).filter { $0.hasSuffix(".yaml") }
        .sorted()

    /// 2026-03-14T12:00:00Z.
    private static let date = Date(timeIntervalSince1970: 1_773_489_600)

    @Test func `the examples are there`() {
        let names = [
            "camera-cards", "card-offload", "folder-offload", "gighive", "nas-to-r2", "roboscope",
            "several-destinations", "vopi",
        ]
        let found: [String] = Self.files.map { String($0.dropLast(5)) }
        #expect(found.filter { names.contains($0) } == names)
    }

    @Test(arguments: ["config/inlet.yaml", "config/examples/vopi.yaml", "README.md"])
    func `all four kinds of VOPI's pictures are named, and that a job costs`(_ path: String) throws {
        let text = try String(contentsOfFile: Repository.root.string + "/" + path, encoding: .utf8)
        let lines = text.split(separator: "\n")
        let key = try #require(lines.firstIndex { $0.contains("commercial_versions") })
        // In the example the comment above the key, elsewhere its own line.
        let explained = lines[max(0, key - 2)...key].joined()
        for kind in ["transparent", "solid", "real", "creative"] { #expect(explained.contains(kind), "\(kind)") }
        #expect(text.contains(/1 credit (a job|or more)/))
    }

    @Test(arguments: files)
    func `each file of an example's comments goes where they say, each route has one, and no secret is shown`(
        _ name: String
    ) async throws {
        let example = try Example(name, in: Self.folder)
        try example.makeFiles(date: Self.date)
        #expect(example.promises.count >= 3)
        let shown = try await example.place.inlet(["config", "show"], environment: example.secrets, code: 0)
        for secret in example.secrets.values { #expect(!(shown.output + shown.errors).contains(secret)) }
        let routes = example.text.split(separator: "\n").filter { $0.hasPrefix("  - name: ") && !$0.contains("desk") }
            .map { String($0.dropFirst("  - name: ".count).prefix { $0 != "#" && $0 != " " }) }
        #expect(Set(example.promises.compactMap(\.route)) == Set(routes))
        for promise in example.promises {
            let answer = try await example.place.inlet(
                ["route", promise.file.string], environment: example.secrets)
            try promise.compare(answer)
        }
    }
}

/// A configuration with `# route:` comments, moved below a folder of the test's own.
struct Example {
    let place: Place
    let text: String
    let promises: [Promise]
    /// Values for each `${env:NAME}`.
    let secrets: [String: String]

    init(_ name: String, in folder: FilePath) throws {
        try self.init(String(contentsOfFile: folder.appending(name).string, encoding: .utf8))
    }

    init(_ original: String) throws {
        place = try Place()
        let home = place.folder.path.string
        text = original.replacing("~/", with: home + "/").replacing(/(?<start>[ "])\/(?<top>volume1|srv|media|mnt)\//) {
            "\($0.output.start)\(home)/\($0.output.top)/"
        }
        try place.configure(text: text)
        let names = original.matches(of: /\$\{env:(?<name>\w+)\}/).map { String($0.output.name) }
        secrets = Dictionary(names.map { ($0, "secret-of-\($0.lowercased())") }) { first, _ in first }
        promises = text.split(separator: "\n").compactMap(Promise.init)
    }

    /// 4 KiB each, so that no example finds them too small.
    func makeFiles(date: Date) throws {
        for (number, promise) in promises.enumerated() {
            let path = promise.file.string
            try FileManager.default.createDirectory(
                atPath: promise.file.removingLastComponent().string, withIntermediateDirectories: true)
            let content = path.hasSuffix(".yaml") ? Data("label: Live\n".utf8) : bytes(4096, seed: UInt64(number))
            try content.write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
    }
}

/// A line `# route: FILE -> ROUTE to DESTINATIONS as KEY`, or `# route: FILE -> words that inlet route says`.
struct Promise {
    let file: FilePath
    let words: String

    init?(_ line: Substring) {
        guard let match = line.wholeMatch(of: /# route: (?<file>\/.+) -> (?<words>.+)/) else { return nil }
        file = FilePath(String(match.output.file))
        words = String(match.output.words)
    }

    /// nil where no route takes it.
    var parts: (route: String, destinations: String, key: String)? {
        words.wholeMatch(of: /(?<route>\S+) to (?<destinations>.+) as (?<key>\S+)/).map {
            (String($0.output.route), String($0.output.destinations), String($0.output.key))
        }
    }

    /// nil where no route takes it.
    var route: String? { parts?.route }

    func compare(_ answer: Place.Finished) throws {
        let said = answer.output + answer.errors
        guard let parts else {
            #expect(answer.output.contains(words), "\(file): \(said)")
            return
        }
        #expect(answer.ending == .code(0), "\(file): \(said)")
        let lines = answer.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(lines.contains("route \(parts.route) takes it"), "\(file): \(said)")
        #expect(lines.contains("to       \(parts.destinations)"), "\(file): \(said)")
        let keys = lines.filter { $0.hasPrefix("key      ") }.map { $0.dropFirst("key      ".count) }
        #expect(keys.contains { isKey(String($0)) }, "\(file): not \(parts.key): \(said)")
    }

    /// Whether `key` is the promised one, except for a part that `*` stands for; any key where none is promised.
    func isKey(_ key: String) -> Bool {
        let ends = (parts?.key ?? "*").split(separator: "*", omittingEmptySubsequences: false)
        guard let start = ends.first, let end = ends.last else { return false }
        return ends.count == 1 ? key == start : key.hasPrefix(start) && key.hasSuffix(end)
    }
}
