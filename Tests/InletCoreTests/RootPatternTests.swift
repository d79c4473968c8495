import InletCore
import SystemPackage
import Testing

@Suite struct RootPatternTests {
    @Test(arguments: [
        ("/media/*/DCIM", "/media/A/DCIM", "/media/A/DCIM"),
        ("/media/*/DCIM", "/media/A/DCIM/100/a.jpg", "/media/A/DCIM"),
        ("/media/*/DCIM", "/media/A/PRIVATE/a", nil), ("/media/*/DCIM", "/media/DCIM", nil),
        ("/media/*/DCIM", "/mnt/A/DCIM", nil), ("/media/*/*", "/media/ann/EOS/DCIM/a", "/media/ann/EOS"),
        ("/media/EOS?", "/media/EOS1", "/media/EOS1"), ("/media/EOS?", "/media/EOS12", nil),
        ("/media/[ab]*", "/media/beta/x", "/media/beta"), ("/media/*", "/media/.hidden/x", nil),
        ("/media/.*", "/media/.hidden", "/media/.hidden"),
    ])
    func `the folder of a pattern that a path lies in`(pattern: String, path: String, root: String?) throws {
        #expect(try RootPattern(FilePath(pattern)).root(of: FilePath(path)) == root.map { FilePath($0) })
    }

    @Test func `what comes before the first wildcard is fixed`() throws {
        let pattern = try RootPattern("/media/ann/*/DCIM")
        #expect(pattern.parent == "/media/ann")
        #expect(pattern.parts.count == 2)
        #expect(RootPattern.isPattern("/media/*/DCIM"))
        #expect(!RootPattern.isPattern("/srv/drop"))
    }

    @Test func `a pattern without an end, or that cannot be understood, is refused at its place`() {
        #expect(throws: PatternError.self) { try RootPattern("/media/**/DCIM") }
        do throws(PatternError) {
            _ = try RootPattern("/media/[a/DCIM")
            Issue.record("an open bracket was taken")
        } catch {
            #expect(error.offset >= 7)
        }
    }

    @Test func `the label of the volume is a part of keys, and its segment goes where there is none`() throws {
        let template = try KeyTemplate("cards/{volume}/{name}")
        var fields = KeyFields(
            path: "100/a.jpg", modified: 0, category: "images", admitted: WallTime(milliseconds: 0), volume: "EOS 1/2")
        #expect(template.key(fields) == "cards/EOS_1_2/a.jpg")
        // A slash with a combining mark is one Character, but stores see the slash.
        fields.volume = "a/\u{308}b"
        #expect(template.key(fields).split(separator: "/").count == 3)
        fields.volume = nil
        #expect(template.key(fields) == "cards/a.jpg")
    }
}
