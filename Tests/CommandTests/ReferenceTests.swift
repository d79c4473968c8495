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
        #expect(reference["answers"]?["commands"]?["status"] != nil)
    }
}
