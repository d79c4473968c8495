import InletConfig
import InletCore
import Testing

/// Whose files a watched folder takes.
struct OwnerTests {
    private func text(_ watch: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop\(watch) }]
        routes: [{ name: all, to: lib }]
        """
    }

    @Test(arguments: [
        ("", SourceRule()), (", owners: [root, 1004]", SourceRule(owners: [0, 1004])),
        (", owners: root", SourceRule(owners: [0])), (", hard_links: refuse", SourceRule(hardLinks: .refuse)),
        (", owners: ['0'], hard_links: allow", SourceRule(owners: [0])),
    ])
    func `users are named by name or number`(_ watch: String, _ rule: SourceRule) throws {
        #expect(try parse(text(watch)).settings.watch.first?.sources == rule)
    }

    @Test(arguments: [
        (", owners: [root, nobody-has-this]", "2:", "'nobody-has-this'"),
        (", owners: [4294967295]", "2:", "'4294967295'"), (", owners: [-1]", "2:", "'-1'"),
        (", owners: []", "2:", "no user"), (", hard_links: perhaps", "2:", "hard_links"),
    ])
    func `a user that there is not is an error where it stands`(_ watch: String, line: String, word: String) {
        let found = complaints(text(watch))
        #expect(found.contains(word) && found.contains(":\(line)"), "\(found)")
    }

    @Test func `the unknown one of several is pointed at`() {
        let found = complaints(text(", owners: [root, nobody-has-this]"))
        // watch: [{ path: /srv/drop, owners: [root, nobody-has-this
        #expect(found.contains(":2:43:"), "\(found)")
    }
}
