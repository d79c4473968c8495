import Foundation
import InletLinux
import SystemPackage
import Testing

/// What contributors read about failpoints is what there is.
struct FailpointTableTests {
    @Test func `README lists every failpoint, in order, with its meaning`() throws {
        let readme = try String(contentsOfFile: Repository.root.appending("README.md").string, encoding: .utf8)
        let table = readme.split(separator: "\n").drop { $0 != "### Failpoints" }.dropFirst()
            .prefix { !$0.hasPrefix("### ") }
        let rows = table.filter { $0.hasPrefix("| `") }.map(String.init)
        #expect(rows == Failpoint.allCases.map { "| `\($0.rawValue)` | \($0.meaning) |" })
    }
}
