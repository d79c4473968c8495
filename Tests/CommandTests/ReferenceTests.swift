import Foundation
import InletCore
import InletTestSupport
import Testing

/// What the manual's reference pages are made from.
@Suite struct ReferenceTests {
    @Test func `one JSON object has every table, and each error code a meaning`() async throws {
        let folder = try TemporaryDirectory()
        let run = try await InletProcess.run(["reference"], in: folder.path)
        let reference = try #require(JSON.value(run.output.utf8))
        for table in ["errors", "events", "exits", "metrics", "verdicts"] {
            #expect(reference[table]?.array?.isEmpty == false, "\(table)")
        }
        let verdicts = Set((reference["verdicts"]?.array ?? []).map { $0["name"]?.string })
        let errors = try #require(reference["errors"]?.array)
        #expect(errors.map { $0["code"]?.string } == ErrorCode.allCases.map(\.rawValue))
        for error in errors {
            #expect(verdicts.contains(error["verdict"]?.string), "\(error)")
            #expect(error["meaning"]?.string?.hasSuffix(".") == true, "\(error)")
        }
        // Another code's meaning would be a copy that nobody has read.
        #expect(Set(errors.map { $0["meaning"]?.string }).count == errors.count)
        #expect(reference["api"]?["paths"]?["/api/v1/status"] != nil)
    }

    @Test func `the JSON of every command that has the option --json is in the reference, and no other`() async throws {
        let folder = try TemporaryDirectory()
        let reference = try await InletProcess.run(["reference"], in: folder.path, code: 0)
        let told = try #require(JSON.value(reference.output.utf8)?["answers"]?["commands"]?.object)
        let dump = try await InletProcess.run(["--experimental-dump-help"], in: folder.path, code: 0)
        let root = try #require(JSON.value(dump.output.utf8)?["command"])
        let commands = Self.commands(below: root, [])
        #expect(commands.contains("queue list") && !commands.contains("log level"))
        #expect(Set(told.keys) == Set(commands), "\(Set(told.keys).symmetricDifference(commands).sorted())")
    }

    /// The commands below `command` that have `--json`, as they are typed; hidden ones are left out.
    private static func commands(below command: JSONValue, _ path: [String]) -> [String] {
        guard command["shouldDisplay"]?.boolean != false else { return [] }
        let names = (command["arguments"]?.array ?? []).flatMap { $0["names"]?.array ?? [] }
        let own = names.contains { $0["name"]?.string == "json" } ? [path.joined(separator: " ")] : []
        return own
            + (command["subcommands"]?.array ?? []).flatMap {
                commands(below: $0, path + [$0["commandName"]?.string ?? ""])
            }
    }
}
