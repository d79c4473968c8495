import InletCore
import SystemPackage
import Testing

struct MediaTypeTests {
    @Test(arguments: [
        ("video/*", "video/mp4", true), ("video/*", "VIDEO/MP4", true), ("video/*", "image/mp4", false),
        ("image/jpeg", "image/jpeg", true), ("image/jpeg", "image/jpeg2000", false), ("*/*", "a/b", true),
        ("video/matroska", "video/x-matroska", true), ("video/x-matroska", "video/matroska", true),
        ("application/vnd.*", "application/vnd.rar", true), ("application/vnd.*", "application/pdf", false),
        ("application/*zip*", "application/x-7zip-compressed", true), ("a/*b*c", "a/xbxbxc", true),
        ("a/*b*c", "a/xbxbx", false), ("video/*", "video", false), ("video/*", "video/", true),
    ])
    func `a pattern matches types, whatever their case and the x- of unregistered ones`(
        pattern: String, type: String, matches: Bool
    ) throws {
        #expect(try MediaTypePattern(pattern).matches(type) == matches)
    }

    @Test(arguments: [("video", 0), ("", 0), ("a/b/c", 0), ("/mp4", 0), ("video/", 0), ("video/mp 4", 8), ("a/b;c", 3)])
    func `what is no media type is refused where it goes wrong`(text: String, offset: Int) {
        do throws(PatternError) {
            _ = try MediaTypePattern(text)
            Issue.record("accepted")
        } catch {
            #expect(error.offset == offset)
        }
    }

    private func arrival(_ path: FilePath) -> Arrival {
        Arrival(
            root: "/drop", path: path,
            identity: FileIdentity(size: 100, modified: 0, changed: 0, inode: 1, device: 1))
    }

    private func decide(_ table: RouteTable, _ path: FilePath, _ mediaType: String?) -> RouteDecision {
        var facts = Facts()
        facts.mediaType = mediaType
        return table.plan(arrival(path), facts: facts, at: WallTime(milliseconds: 42), zone: "UTC")
    }

    private func table() throws -> RouteTable {
        var videos = Route(name: "videos", to: ["a"])
        videos.match.mediaTypes = [try MediaTypePattern("video/*")]
        let text = Route(name: "text", match: RouteMatch(extensions: ["txt"]), to: ["a"])
        var pictures = Route(name: "pictures", to: ["a"])
        pictures.validate.mediaTypes = [try MediaTypePattern("image/*"), try MediaTypePattern("application/pdf")]
        return RouteTable([videos, text, pictures])
    }

    @Test func `content decides between routes, and is asked for only where it does`() throws {
        let table = try table()
        guard case .needs([.mediaType]) = decide(table, "a.txt", nil) else {
            Issue.record("decided without the content")
            return
        }
        for (type, route) in [("video/x-matroska", "videos"), ("text/plain", "text")] {
            guard case .plan(let plan) = decide(table, "a.txt", type) else {
                Issue.record("no plan for \(type)")
                return
            }
            #expect(plan.route == route)
        }
        #expect(table.candidates(for: "a.txt", size: 1).map(\.name) == ["videos", "text"])
        #expect(table.candidates(for: "a.jpg", size: 1).map(\.name) == ["videos", "pictures"])
        let trace = table.trace(arrival("a.txt"), mediaType: "text/plain")
        #expect(trace.map(\.mismatch) == ["its content is text/plain, not video/*", nil])
    }

    @Test(arguments: [
        ("evil.mp4", "its name says video/mp4"), ("evil", "its name does not tell"),
        ("evil.xyz", "its name does not tell"),
    ])
    func `a rejection names what the file is and what it is called`(path: FilePath, named: String) throws {
        guard case .rejected(_, let reason) = decide(try table(), path, "application/x-dosexec") else {
            Issue.record("not rejected")
            return
        }
        #expect(
            reason == "its content is application/x-dosexec, \(named); route 'pictures' takes image/*, application/pdf")
    }

    @Test func `a type that the name does not tell is that of the content`() throws {
        guard case .plan(let plain) = decide(try table(), "scan", "image/png"),
            case .plan(let named) = decide(try table(), "scan.jpg", "image/png")
        else {
            Issue.record("no plan")
            return
        }
        #expect(plain.mediaType == "image/png" && named.mediaType == "image/jpeg")
    }

    @Test func `what is made of a file waits until it is known that it is accepted`() throws {
        var route = Route(name: "videos", validate: Validation(maxSize: 1000), to: ["a"])
        route.derive = [
            DeriveRule.Preset.ffmpeg.rule,
            DeriveRule(name: "all", command: ["p", "{in}", "-o={out}"], suffix: ".x"),
        ]
        let table = RouteTable([route])
        #expect(table.derivations(of: arrival("A.MP4"), facts: Facts()).map(\.name) == ["thumbnail", "all"])
        #expect(table.derivations(of: arrival("a.txt"), facts: Facts()).map(\.name) == ["all"])
        #expect(route.derive[1].arguments(in: "/i", out: "/o") == ["p", "/i", "-o=/o"])
        #expect(table.adopting.derivations(of: arrival("a.txt"), facts: Facts()).isEmpty)
        var large = arrival("a.txt")
        large.identity.size = 1001
        #expect(table.derivations(of: large, facts: Facts()).isEmpty)
        let made = Companion(path: "1.thumb.jpg", kind: .derived, ending: ".thumb.jpg")
        #expect(made.key(beside: "k/a.mp4", of: "a.mp4") == "k/a.mp4.thumb.jpg")
    }
}
