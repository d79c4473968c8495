import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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
