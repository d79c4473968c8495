import InletConfig
import InletCore
import Testing

/// `dedupe:` of a route.
struct DedupeTests {
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

    @Test func `another word is refused`() throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(text(", dedupe: drop")) }
        #expect("\(errors)".contains("dedupe") && "\(errors)".contains("skip"), "\(errors)")
    }
}
