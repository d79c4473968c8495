import InletConfig
import InletCore
import Testing

/// `priority:` of a route.
struct PriorityTests {
    private func text(_ route: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop }]
        routes: [{ name: all, to: lib\(route) }]
        """
    }

    @Test(arguments: [
        ("", Priority.normal), (", priority: low", .low), (", priority: normal", .normal), (", priority: high", .high),
    ])
    func `a route says how urgent its files are`(key: String, priority: Priority) throws {
        #expect(try parse(text(key)).settings.routes.first?.priority == priority)
    }

    @Test func `another word is refused`() throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(text(", priority: urgent")) }
        #expect("\(errors)".contains("priority") && "\(errors)".contains("high"), "\(errors)")
    }
}
