import InletConfig
import InletCore
import Testing

/// What a route says in one word: `dedupe:` and `priority:`.
struct RouteWordTests {
    private func text(_ route: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop }]
        routes: [{ name: all, to: lib\(route) }]
        """
    }

    @Test(arguments: [
        ("", DuplicateRule.off), (", dedupe: off", .off), (", dedupe: skip", .skip), (", dedupe: link", .link),
    ])
    func `a route says what happens to duplicates`(key: String, rule: DuplicateRule) throws {
        let route = try #require(try parse(text(key)).settings.routes.first)
        #expect(route.dedupe == rule)
        #expect(route.facts.contains(.sha256) == (rule != .off))
    }

    @Test(arguments: [
        ("", Priority.normal), (", priority: low", .low), (", priority: normal", .normal), (", priority: high", .high),
    ])
    func `a route says how urgent its files are`(key: String, priority: Priority) throws {
        #expect(try parse(text(key)).settings.routes.first?.priority == priority)
    }

    @Test(arguments: [("dedupe", "drop", "skip"), ("priority", "urgent", "high")])
    func `another word is refused`(key: String, word: String, offered: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(text(", \(key): \(word)")) }
        #expect("\(errors)".contains(key) && "\(errors)".contains(offered), "\(errors)")
    }
}
