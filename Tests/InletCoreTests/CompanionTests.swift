import InletCore
import SystemPackage
import Testing

struct CompanionTests {
    private func clips(
        metadata: Bool = true, extensions: [String] = ["xmp", "srt"], completion: Completion = .quiet
    ) -> Route {
        Route(
            name: "clips", match: RouteMatch(extensions: ["mov", "mp4"]), to: ["a"],
            sidecars: SidecarRule(metadata: metadata, extensions: extensions), completion: completion)
    }

    private func mains(_ table: RouteTable, _ path: FilePath) -> [String] {
        table.belongings(of: path).map { "\($0.main) \($0.companion.kind.rawValue)" }
    }

    @Test func `a file's companions are looked for beside it, in both cases of their endings`() {
        let route = clips(extensions: ["xmp"], completion: .marker)
        let found = route.companions(of: "gigs/clip.mp4").map { "\($0.path) \($0.kind.rawValue) \($0.ending)" }
        #expect(
            found == [
                "gigs/clip.mp4.done marker done", "gigs/clip.mp4.yaml metadata yaml", "gigs/clip.mp4.yml metadata yml",
                "gigs/clip.mp4.xmp full_name xmp", "gigs/clip.mp4.XMP full_name XMP", "gigs/clip.xmp same_stem xmp",
                "gigs/clip.XMP same_stem XMP",
            ])
        #expect(Route(name: "all", to: ["a"]).companions(of: "clip.mp4").isEmpty)
    }

    @Test(arguments: [
        (
            "x/clip.xmp",
            ["x/clip.mov same_stem", "x/clip.MOV same_stem", "x/clip.mp4 same_stem", "x/clip.MP4 same_stem"]
        ),
        (
            "x/clip.mp4.XMP",
            [
                "x/clip.mp4 full_name", "x/clip.mp4.mov same_stem", "x/clip.mp4.MOV same_stem",
                "x/clip.mp4.mp4 same_stem", "x/clip.mp4.MP4 same_stem",
            ]
        ),
        ("clip.mp4.yaml", ["clip.mp4 metadata"]),
        ("clip.mp4.yml", ["clip.mp4 metadata"]),
        // Neither a clip's nor an ending that the route names.
        ("clip.jpg.yaml", []), ("clip.txt", []), ("clip.mp4", []), ("xmp", []), (".xmp", []), ("clip.mp4.done", []),
    ])
    func `a companion's name says to which files it may belong`(path: String, expected: [String]) {
        #expect(mains(RouteTable([clips()]), FilePath(path)) == expected)
    }

    @Test func `the route that takes the file decides, not one further down`() {
        let first = Route(name: "first", match: RouteMatch(extensions: ["mp4"]), to: ["a"])
        #expect(
            mains(RouteTable([first, clips()]), "clip.mp4.xmp") == ["clip.mp4.mov same_stem", "clip.mp4.MOV same_stem"])
        #expect(mains(RouteTable([first]), "clip.mp4.xmp").isEmpty)
        #expect(!RouteTable([first]).hasCompanions && RouteTable([first, clips()]).hasCompanions)
    }

    @Test func `a marker belongs to a file whose route waits for one`() {
        let table = RouteTable([clips(completion: .marker)])
        #expect(mains(table, "clip.mp4.done") == ["clip.mp4 marker"])
        #expect(table.settle(for: "clip.mp4") == .zero)
        #expect(table.settle(for: "clip.txt") == nil)
    }

    /// A preview is a companion of the raw file; alone it stands for itself, with companions of its own.
    @Test func `an ending that is both a file's and a companion's is a companion of what cannot be one`() {
        let raws = Route(
            name: "raws", match: RouteMatch(extensions: ["cr3", "jpg"]), to: ["a"],
            sidecars: SidecarRule(extensions: ["jpg", "xmp"]))
        let table = RouteTable([raws])
        #expect(mains(table, "i.jpg") == ["i.cr3 same_stem", "i.CR3 same_stem"])
        #expect(mains(table, "i.cr3").isEmpty)
        #expect(mains(table, "i.xmp").filter { $0.hasPrefix("i.jpg") } == ["i.jpg same_stem"])
        let itself: [FilePath] = ["i.jpg", "i.JPG"]
        #expect(raws.companions(of: "i.jpg").allSatisfy { !itself.contains($0.path) })
        #expect(raws.companions(of: "i.cr3").map(\.path).contains("i.jpg"))
    }

    @Test func `what one side finds the other side finds too`() {
        let route = clips(completion: .marker)
        let table = RouteTable([route])
        for main in ["clip.mp4", "a/b/clip.MOV", "a.b.c.mp4"] as [FilePath] {
            for companion in route.companions(of: main) {
                #expect(
                    table.belongings(of: companion.path).contains { $0.main == main && $0.companion == companion },
                    "\(companion.path)")
            }
        }
    }

    @Test(arguments: [
        ("a/b/clip.mp4", "clip.mp4", Companion.Kind.sameStem, "xmp", "a/b/clip.xmp"),
        ("a/b/clip.mp4", "clip.mp4", Companion.Kind.fullName, "xmp", "a/b/clip.mp4.xmp"),
        ("a/b/clip_2.MP4", "clip.MP4", Companion.Kind.sameStem, "XMP", "a/b/clip_2.XMP"),
        ("a/b/clip.mp4", "clip.mp4", Companion.Kind.metadata, "yaml", "a/b/clip.mp4.yaml"),
        // The key has no ending of its file: what looks like one stays.
        ("shots/v1.2", "v1.2.mp4", Companion.Kind.sameStem, "xmp", "shots/v1.2.xmp"),
        ("4f2a", "clip.mp4", Companion.Kind.sameStem, "xmp", "4f2a.xmp"),
        ("a/clip.mp4", "clip.mp4", Companion.Kind.sameStem, "side car", "a/clip.side_car"),
    ])
    func `a companion's key is made from its file's`(
        key: String, main: String, kind: Companion.Kind, ending: String, expected: String
    ) {
        let companion = Companion(path: "x", kind: kind, ending: ending)
        #expect(companion.key(beside: key, of: FilePath(main)) == expected)
    }

    @Test func `a companion's key is no longer than a key may be`() {
        let companion = Companion(path: "x", kind: .fullName, ending: "xmp")
        let key = companion.key(beside: String(repeating: "k", count: 1024), of: "clip.mp4")
        #expect(key.utf8.count == 1024 && key.hasSuffix("k.xmp"))
        let derived = Companion(path: "x", kind: .derived, ending: ".thumb.jpg")
        let small = derived.key(beside: "a/" + String(repeating: "k", count: 251) + ".mp4", of: "clip.mp4")
        #expect(small == "a/" + String(repeating: "k", count: 245) + ".thumb.jpg")
    }

    @Test func `the worst of several files stands for all`() {
        #expect(FileState.worst([.delivered, .failed, .rejected]) == .failed)
        #expect(FileState.worst([.delivered, .superseded]) == .delivered)
        #expect(FileState.worst([.superseded]) == .superseded)
        #expect(FileState.worst([.gone, .delivered, .pending]) == .pending)
        #expect(FileState.allCases.allSatisfy { FileState.worst([$0]) == $0 })
    }
}
