import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The seeds that the random tests of this module run with.
enum Seeds {
    /// Replayed at every run. A random test that fails names its seed, and the file that keeps the seed with its commands:
    /// add the seed here, with the fix, and remove the file.
    static let stored: [UInt64] = [1, 2, 3, 5]

    /// Those, what has failed here before, and one more that nobody has seen yet.
    static let all = stored + kept.seeds.filter { !stored.contains($0) } + [UInt64.random(in: 1_000...UInt64.max)]

    private static let kept = KeptSeeds(
        FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
            .pushing(".build/failed-seeds"))

    /// Runs `body`, which adds what it does to the list. When it throws, the seed and the list are kept.
    static func play(_ seed: UInt64, of test: String, _ body: (_ commands: inout [String]) async throws -> Void) async {
        var commands: [String] = []
        do {
            try await body(&commands)
        } catch {
            Issue.record("\(test): \(kept.keep(seed, of: test, commands + ["\(error)"]))\n\(error)")
        }
    }
}

/// A folder with a file for each seed that has failed.
struct KeptSeeds {
    private let folder: FilePath

    init(_ folder: FilePath) { self.folder = folder }

    /// The seeds in the folder. Its files are called `test-seed`.
    var seeds: [UInt64] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
        return Set(names.compactMap { $0.split(separator: "-").last.flatMap { UInt64($0) } }).sorted()
    }

    /// - Returns: what a person should know: the seed, and the path of its file.
    func keep(_ seed: UInt64, of test: String, _ commands: [String]) -> String {
        let file = folder.appending("\(test)-\(seed)")
        do {
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            let text = "seed \(seed) of \(test)\n" + commands.joined(separator: "\n") + "\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: file.string))
            return "seed \(seed), kept with its commands in \(file.string)"
        } catch {
            return "seed \(seed), which could not be kept: \(error)"
        }
    }
}

@Suite(.seated) struct SeedTests {
    @Test func `a seed that failed is kept with its commands, and comes again`() throws {
        let directory = try TemporaryDirectory()
        let kept = KeptSeeds(directory.path.appending("seeds"))
        #expect(kept.seeds == [])
        let said = kept.keep(UInt64.max, of: "model", ["admit a", "claim 1"])
        let file = directory.path.pushing(FilePath("seeds/model-\(UInt64.max)"))
        #expect(said.contains(file.string) && said.contains("\(UInt64.max)"))
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: file.string)), as: UTF8.self)
        #expect(text == "seed \(UInt64.max) of model\nadmit a\nclaim 1\n")
        _ = kept.keep(7, of: "batches", [])
        #expect(kept.seeds == [7, UInt64.max])
    }

    @Test func `every random test plays the stored seeds and a new one`() {
        #expect(Seeds.all.starts(with: Seeds.stored) && Seeds.all.count > Seeds.stored.count)
    }
}

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
