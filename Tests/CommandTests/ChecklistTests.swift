import Foundation
import Testing

/// Every capability of the reference documents has an answer, and every test that an answer names exists.
struct ChecklistTests {
    @Test func `every row of the checklist has exactly one answer`() {
        #expect(Checklist.rows.map(\.id) == Checklist.ids)
    }

    @Test(arguments: Checklist.rows)
    func `an answer names tests that exist, or the issue that will give it`(row: Checklist.Row) {
        switch row.answer {
        case .shown(let tests, let later):
            expectTests(tests, row.id)
            if let later { expectIssue(later, row.id) }
        case .superseded(let tests, let why):
            expectTests(tests, row.id)
            #expect(why.wholeMatch(of: /[A-Z].{30,}\./) != nil, "\(row.id): '\(why)' is no sentence")
        case .later(let issue): expectIssue(issue, row.id)
        }
    }

    @Test func `a name that no test has is noticed`() {
        #expect(Self.declared.contains("every row of the checklist has exactly one answer"))
        #expect(!Self.declared.contains("a test that nobody has written"))
        #expect(Self.declared.count > 300)
    }

    private func expectTests(_ tests: [String], _ id: String) {
        #expect(!tests.isEmpty, "\(id) names no test")
        #expect(Set(tests).count == tests.count, "\(id) names a test twice")
        for test in tests {
            // Not in the expectation, which would print all the names there are.
            let isDeclared = Self.declared.contains(test)
            #expect(isDeclared, "\(id): no test is called '\(test)'")
        }
    }

    private func expectIssue(_ text: String, _ id: String) {
        #expect(text.wholeMatch(of: /issue [7-8] of 8: .+/) != nil, "\(id): '\(text)' names no issue")
    }

    /// The names of all tests below `Tests`, as they stand between backticks behind `@Test`.
    private static let declared: Set<String> = {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let paths = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
        var names: Set<String> = []
        for case let file as URL in paths ?? .init() where file.pathExtension == "swift" {
            guard let text = try? String(contentsOf: file, encoding: .utf8) else { continue }
            for match in text.matches(of: /@Test\b[^`]*?\bfunc `([^`]+)`/) { names.insert(String(match.1)) }
        }
        return names
    }()
}

extension Checklist.Row: CustomTestStringConvertible {
    var testDescription: String { id }
}
