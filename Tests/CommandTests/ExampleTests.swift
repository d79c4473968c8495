import Foundation
import InletTestSupport
import SystemPackage
import Testing

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

    @Test(arguments: ["config/inlet.yaml", "config/examples/vopi.yaml", "Sources/inlet/inlet.docc/Destination-VOPI.md"])
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
