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
        ("a/clip.mp4", "clip.mp4", Companion.Kind.sameStem, "side car", "a/clip.side car"),
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

/// What a new file is among those that it belongs together with, by what is known of them.
@Suite struct CompanionRuleTests {
    private static let now = WallTime(milliseconds: 1_000_000)

    private func rule(
        _ completion: Completion = .quiet, metadata: Bool = true, extensions: [String] = ["xmp"],
        skipBefore: WallTime? = nil
    ) -> CompanionRule {
        let route = Route(
            name: "clips", match: RouteMatch(extensions: ["mp4"]), to: ["a"],
            sidecars: SidecarRule(metadata: metadata, extensions: extensions, wait: .seconds(10)),
            completion: completion)
        return CompanionRule(routes: RouteTable([route]), settle: .seconds(5), skipBefore: skipBefore)
    }

    private func identity(_ inode: UInt64 = 1, age: Duration = .seconds(60)) -> FileIdentity {
        let time = (Self.now.milliseconds - age.milliseconds) * 1_000_000
        return FileIdentity(size: 1, modified: time, changed: time, inode: inode, device: 1)
    }

    private func arrival(_ path: FilePath) -> FoundFile {
        FoundFile(root: "/in", path: path, identity: identity())
    }

    private func row(
        _ state: FileState = .delivered, code: ErrorCode? = nil, isFinished: Bool = true, _ inode: UInt64 = 1
    ) -> CompanionContext.Row {
        CompanionContext.Row(id: 7, state: state, code: code, isFinished: isFinished, identity: identity(inode))
    }

    /// What is there, old enough; and what the journal has of it.
    private func facts(
        _ there: [FilePath], rows: [FilePath: CompanionContext.Row] = [:], known: Set<FilePath> = []
    ) -> CompanionContext {
        var facts = CompanionContext()
        for path in there { facts[path].identity = identity() }
        for (path, row) in rows { facts[path].row = row }
        for path in known { facts[path].isKnown = true }
        return facts
    }

    private func status(_ path: FilePath, _ facts: CompanionContext, _ rule: CompanionRule? = nil) -> String {
        switch (rule ?? self.rule()).status(of: arrival(path), facts, at: Self.now) {
        case .alone: "alone"
        case .main(let found, let isWhole, _): "main \(found.map { $0.companion.ending }) \(isWhole)"
        case .marked(let found): "marked \(found.map { $0.companion.ending })"
        case .unmarked(let marker): "unmarked \(marker)"
        case .unsettled: "unsettled"
        case .waiting(let main, let wait): "waiting \(main) \(wait)"
        case .dormant: "dormant"
        case .late(_, let main, let quiet): "late \(main) \(quiet.map { "\($0)" } ?? "now")"
        case .corrected(let main, let job): "corrected \(main) \(job)"
        case .orphan(let quiet): "orphan \(quiet)"
        }
    }

    @Test func `of files that belong to no others nothing must be known`() {
        let plain = CompanionRule(
            routes: RouteTable([Route(name: "all", to: ["a"])]), settle: .seconds(5), skipBefore: nil)
        #expect(plain.around(arrival("clip.mp4")).disk.isEmpty && plain.around(arrival("clip.mp4")).journal.isEmpty)
        #expect(rule().around(arrival("clip.txt")).disk.isEmpty)
        #expect(status("clip.mp4", facts([]), plain) == "alone" && status("clip.txt", facts([])) == "alone")
    }

    @Test func `what the rule goes by is asked for`() {
        let (disk, journal) = rule(.marker).around(arrival("a/clip.mp4"))
        #expect(Set(disk).isSuperset(of: ["a/clip.mp4.done", "a/clip.mp4.yaml", "a/clip.mp4.xmp", "a/clip.xmp"]))
        #expect(Set(journal) == ["a/clip.mp4", "a/clip.mp4.done"])
        let companion = rule(.marker).around(arrival("a/clip.mp4.xmp"))
        #expect(Set(companion.disk).isSuperset(of: ["a/clip.mp4", "a/clip.mp4.done", "a/clip.mp4.yaml"]))
        #expect(Set(companion.journal).isSuperset(of: ["a/clip.mp4", "a/clip.mp4.done"]))
    }

    @Test func `a file is whole with all that its route names, and waits for the rest`() {
        #expect(status("clip.mp4", facts(["clip.mp4.yaml", "clip.xmp"])) == #"main ["yaml", "xmp"] true"#)
        #expect(status("clip.mp4", facts(["clip.xmp"])) == #"main ["xmp"] false"#)
        // Of `.yaml` and `.yml` the first counts.
        #expect(
            status("clip.mp4", facts(["clip.mp4.yaml", "clip.mp4.yml", "clip.xmp"])) == #"main ["yaml", "xmp"] true"#)
    }

    @Test func `a companion that somebody writes to is waited for`() {
        var written = facts(["clip.mp4.yaml", "clip.xmp"])
        #expect(
            rule().probed(for: arrival("clip.mp4"), written, at: Self.now).map(\.path) == ["clip.mp4.yaml", "clip.xmp"])
        written["clip.xmp"].isBusy = true
        #expect(status("clip.mp4", written) == #"main ["yaml"] false"#)
        var young = facts(["clip.mp4.yaml"])
        young["clip.xmp"].identity = identity(age: .seconds(1))
        #expect(status("clip.mp4", young) == #"main ["yaml"] false"#)
        // What cannot be complete yet is not opened.
        #expect(rule().probed(for: arrival("clip.mp4"), young, at: Self.now).map(\.path) == ["clip.mp4.yaml"])
        var marker = facts(["clip.mp4.done"])
        marker["clip.mp4.done"].isBusy = true
        #expect(status("clip.mp4", marker, rule(.marker)) == "unsettled")
    }

    @Test func `without its marker a file is left alone, and nothing beside it is opened`() {
        let rule = rule(.marker)
        let unmarked = facts(["clip.mp4.yaml", "clip.xmp"])
        #expect(status("clip.mp4", unmarked, rule) == "unmarked clip.mp4.done")
        #expect(rule.probed(for: arrival("clip.mp4"), unmarked, at: Self.now).isEmpty)
        #expect(status("clip.mp4", facts(["clip.mp4.done"]), rule) == #"marked ["done"]"#)
        #expect(status("clip.xmp", facts(["clip.mp4"]), rule) == "dormant")
        #expect(status("clip.xmp", facts(["clip.mp4", "clip.mp4.done"]), rule) == "waiting clip.mp4 10.0 seconds")
    }

    @Test func `a marker that has spoken before says nothing of what its file is now`() {
        let rule = rule(.marker)
        let (main, marker): (FilePath, FilePath) = ("clip.mp4", "clip.mp4.done")
        let spent = facts([marker], rows: [main: row(), marker: row()], known: [marker])
        #expect(status(main, spent, rule) == "unmarked \(marker)")
        // The journal was told to forget the file.
        #expect(status(main, facts([marker], rows: [marker: row()], known: [marker]), rule) == #"marked ["done"]"#)
        // It was written anew.
        #expect(status(main, facts([marker], rows: [main: row(), marker: row()]), rule) == #"marked ["done"]"#)
        // It went with what was replaced before it was sent: the very same one has spoken, another has not.
        for (inode, expected) in [(1, "unmarked \(marker)"), (2, #"marked ["done"]"#)] as [(UInt64, String)] {
            let rows = [main: row(.superseded), marker: row(.superseded, inode)]
            #expect(status(main, facts([marker], rows: rows), rule) == expected)
        }
    }

    @Test func `a companion waits until the journal has its file, and is late then`() {
        #expect(status("clip.xmp", facts(["clip.mp4"])) == "waiting clip.mp4 10.0 seconds")
        #expect(status("clip.xmp", facts(["clip.mp4"], rows: ["clip.mp4": row()], known: ["clip.mp4"])) == "late 7 now")
        // What is at the file's path is another one, which is not in the journal yet.
        #expect(status("clip.xmp", facts(["clip.mp4"], rows: ["clip.mp4": row()])) == "waiting clip.mp4 10.0 seconds")
        // The file was delivered and removed; another of its name may come.
        #expect(status("clip.xmp", facts([], rows: ["clip.mp4": row()])) == "late 7 10.0 seconds")
        for state in [FileState.gone, .superseded] {
            #expect(status("clip.xmp", facts([], rows: ["clip.mp4": row(state)])) == "orphan 10.0 seconds")
        }
        #expect(status("clip.xmp", facts([])) == "orphan 10.0 seconds")
    }

    @Test func `metadata puts a rejection right once its file is disposed of and nobody writes to it`() {
        let (main, yaml): (FilePath, FilePath) = ("clip.mp4", "clip.mp4.yaml")
        let rejected = facts([main, yaml], rows: [main: row(.rejected, code: .badSidecar)], known: [main])
        #expect(status(yaml, rejected) == "corrected clip.mp4 7")
        #expect(rule().probed(for: arrival(yaml), rejected, at: Self.now).map(\.path) == [yaml])
        var written = rejected
        written[yaml].isBusy = true
        #expect(status(yaml, written) == "unsettled")
        let open = row(.rejected, code: .badSidecar, isFinished: false)
        #expect(status(yaml, facts([main, yaml], rows: [main: open], known: [main])) == "unsettled")
        // The first of the two counts; and other companions put nothing right.
        #expect(status("clip.mp4.yml", rejected) == "late 7 now" && status("clip.xmp", rejected) == "late 7 now")
        let other = row(.rejected, code: .rejected)
        #expect(status(yaml, facts([main, yaml], rows: [main: other], known: [main])) == "late 7 now")
    }

    @Test func `a file that was there before the folder was watched takes no companion along`() {
        #expect(status("clip.xmp", facts(["clip.mp4"]), rule(skipBefore: Self.now)) == "orphan 10.0 seconds")
    }
}

struct SidecarMergeTests {
    private func plan(
        _ facts: FileProperties, known: Set<String>? = nil, key: String = "{name}", with: [String: String] = [:]
    ) throws -> Plan {
        let route = Route(
            name: "gigs", key: try KeyTemplate(key), to: ["stage"], with: try with.mapValues { try KeyTemplate($0) },
            sidecarFields: known)
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let decision = RouteTable([route]).plan(
            FoundFile(root: "/drop", path: "band/song.mp4", identity: identity), facts: facts,
            at: WallTime(milliseconds: 42), zone: "UTC")
        return try #require(decision.made)
    }

    @Test func `a sidecar wins over the templates, field by field`() throws {
        let plan = try plan(
            FileProperties(metadata: ["label": "Live", "rating": "5"]),
            with: ["label": "{stem}", "org_name": "{folder[1]}"])
        #expect(plan.with == ["label": "Live", "rating": "5", "org_name": "band"] && plan.notes.isEmpty)
    }

    @Test func `a sidecar may empty a field`() throws {
        #expect(try plan(FileProperties(metadata: ["label": ""]), with: ["label": "{stem}"]).with == ["label": ""])
    }

    @Test func `without a sidecar the templates stand`() throws {
        #expect(try plan(FileProperties(), with: ["label": "{stem}"]).with == ["label": "song"])
    }

    @Test func `fields that no destination knows are left out and said`() throws {
        let plan = try plan(
            FileProperties(metadata: ["label": "Live", "ratng": "5", "key": "../../etc/passwd", "x\n": "1"]),
            known: ["label", "rating"])
        #expect(plan.with == ["label": "Live"])
        #expect(
            plan.notes == [
                "ignored the sidecar's field 'key', which the destination does not have",
                "ignored the sidecar's field 'ratng', which the destination does not have; did you mean 'rating'?",
                "ignored the sidecar's field 'x\\x0A', which the destination does not have",
            ])
    }

    @Test func `a sidecar cannot choose the place of its file`() throws {
        let facts = FileProperties(metadata: [
            "key": "elsewhere", "owner": "root", "category": "x", "to": "other", "name": "n",
        ])
        let plan = try plan(facts, key: "{category}/{owner}/{name}")
        #expect(plan.key == "videos/song.mp4" && plan.category == "videos" && plan.destinations == ["stage"])
    }

    @Test func `a value over several lines becomes one line`() throws {
        let facts = FileProperties(metadata: ["notes": "first\r\nsecond\n\n\tthird\u{7}\u{1B}[2J"])
        #expect(try plan(facts).with == ["notes": "first second third__[2J"])
    }

    @Test func `the stand-in for a date of capture is said once`() throws {
        let with = ["event_date": "{captured:yyyy-MM-dd}"]
        let fallback = try plan(FileProperties(captured: .unknown), key: "{captured:yyyy}/{name}", with: with)
        #expect(fallback.key == "1970/song.mp4")
        #expect(
            fallback.notes == [
                "the file has no capture date; {captured} uses its modification time, 1970-01-01T00:00:00.000Z"
            ])
        let time = try #require(CaptureTime(year: 2026, month: 11, day: 21, hour: 1, minute: 2, second: 3))
        let known = try plan(
            FileProperties(captured: .at(time, origin: "x")), key: "{captured:yyyy}/{name}", with: with)
        #expect(known.key == "2026/song.mp4" && known.with == ["event_date": "2026-11-21"] && known.notes.isEmpty)
    }

    @Test(arguments: [
        (Sidecar(), DuplicateRule.skip), (Sidecar(fields: ["a": "1"]), .off), (Sidecar(labels: ["a": "1"]), .off),
    ])
    func `what a sidecar says, be it labels only, makes a file no duplicate`(
        _ sidecar: Sidecar, _ expected: DuplicateRule
    ) throws {
        var route = Route(name: "r", to: ["a"])
        route.dedupe = .skip
        var facts = FileProperties(sha256: Digest(.sha256, hex: String(repeating: "0", count: 64)))
        facts.add(sidecar)
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let arrival = FoundFile(root: "/drop", path: "a", identity: identity)
        let decision = RouteTable([route]).plan(arrival, facts: facts, at: WallTime(milliseconds: 42))
        #expect(decision.made?.dedupe == expected)
    }

    @Test func `a date of capture is only asked for where a template has it`() throws {
        let route = Route(name: "r", to: ["a"], with: ["event_date": try KeyTemplate("{captured:yyyy-MM-dd}")])
        #expect(route.facts == [.captured])
        #expect(FileProperties().missing(of: [.captured]) == [.captured])
        #expect(FileProperties(captured: .unknown).missing(of: [.captured]).isEmpty)
        #expect(try plan(FileProperties()).notes.isEmpty)
    }
}
