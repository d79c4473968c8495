import InletCore
import Testing

@testable import InletDashboard

/// The table that every command prints.
@Suite struct TableTests {
    private static let rows: [[StyledText]] = [
        [
            StyledText("7", .strong), StyledText("failed", .bad), "/srv/drop/日本語の動画/a very long name of a film 🎬.mov",
            "too large",
        ],
        ["1234", "delivered", "/srv/drop/b.mov", ""],
    ]
    private static let table = Table([.number("JOB"), .text("STATE"), .name("PATH"), .note("REASON")], rows)

    private func lines(_ columns: Int, hasColour: Bool) -> [String] {
        Self.table.text(for: .terminal(columns: columns, hasColour: hasColour)).split(separator: "\n").map(String.init)
    }

    @Test(arguments: [1, 5, 20, 40, 80, 200])
    func `every line fits the terminal, with wide characters too`(_ columns: Int) {
        let shown = lines(columns, hasColour: false)
        #expect(shown.allSatisfy { DisplayWidth.of($0) <= columns }, "\(shown)")
    }

    @Test func `columns line up whatever their colours, and numbers stand at the right`() {
        let plain = lines(60, hasColour: false)
        #expect(plain[0].hasPrefix(" JOB  STATE      PATH") && plain[1].hasPrefix("   7  failed     /srv"))
        #expect(plain[2].hasPrefix("    too large") && plain[3] == "1234  delivered  /srv/drop/b.mov")
        let coloured = lines(60, hasColour: true).map { $0.replacing(/\u{1B}\[\d+m/, with: "") }
        #expect(coloured == plain)
    }

    @Test func `a long name is cut in the middle, and a number never`() {
        let row = lines(40, hasColour: false)[1]
        #expect(row.contains("…") && row.contains(".mov") && row.hasPrefix("   7  "), "\(row)")
    }

    @Test func `in a pipe there is one tab between columns, and nothing is cut`() {
        let text = Self.table.text(for: .pipe)
        #expect(
            text == """
                JOB\tSTATE\tPATH\tREASON
                7\tfailed\t/srv/drop/日本語の動画/a very long name of a film 🎬.mov\ttoo large
                1234\tdelivered\t/srv/drop/b.mov\t
                """)
    }

    @Test func `a name cannot forge a column or a row`() {
        let forged = Table([.name("PATH"), .text("STATE")], [["a\tb\nc", "ok"]]).text(for: .pipe)
        #expect(forged == "PATH\tSTATE\na\\x09b\\x0Ac\tok")
    }
}

/// What commands print with --json.
@Suite struct CommandOutputTests {
    @Test func `each command stands in the table once, and the document has every type that it refers to`() throws {
        let names = CommandOutput.all.map(\.command)
        #expect(Set(names).count == names.count)
        let document = CommandOutput.document(CommandOutput.all).text
        let references = document.matches(of: /#\/components\/schemas\/(\w+)/).map { String($0.1) }
        let types = try #require(
            CommandOutput.document(CommandOutput.all).object?["components"]?.object?["schemas"]?.object)
        #expect(!references.isEmpty && references.allSatisfy { types[$0] != nil })
    }
}
