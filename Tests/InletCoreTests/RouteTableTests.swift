import InletCore
import SystemPackage
import Testing

extension RoutingResult {
    var made: Plan? { if case .plan(let plan) = self { plan } else { nil } }
    var refusal: String? { if case .rejected(_, let reason) = self { reason } else { nil } }
}

struct RouteTableTests {
    private func arrival(_ path: FilePath, size: Int64 = 100) -> FoundFile {
        let identity = FileIdentity(size: size, modified: 0, changed: 0, inode: 1, device: 1)
        return FoundFile(root: "/drop", path: path, identity: identity)
    }

    private func plan(_ table: RouteTable, _ arrival: FoundFile, facts: FileProperties = FileProperties())
        -> RoutingResult
    {
        table.plan(arrival, facts: facts, at: WallTime(milliseconds: 42), zone: "UTC")
    }

    private func table() throws -> RouteTable {
        RouteTable([
            Route(
                name: "gigs",
                match: RouteMatch(paths: [try GlobPattern("gigs/**")], extensions: ["mp4", "tar.gz"], minSize: 1),
                validate: Validation(minSize: 10, maxSize: 2 << 30), to: ["stage", "archive"], settle: .seconds(9)),
            Route(
                name: "pictures", match: RouteMatch(maxSize: 1000), validate: Validation(extensions: ["jpg", "png"]),
                to: ["r2"]),
        ])
    }

    @Test(arguments: [
        ("gigs/a.mp4", 4_402_341_478, "4.1 GiB is over the limit of 2 GiB of route 'gigs'"),
        ("gigs/a.mp4", 2_147_483_649, "2147483649 bytes is over the limit of 2147483648 bytes of route 'gigs'"),
        ("gigs/a.mp4", 1, "1 byte is under the minimum of 10 bytes of route 'gigs'"),
        ("a.exe", 5, "extension 'exe' is not allowed by route 'pictures'; allowed: jpg, png"),
        ("Makefile", 5, "a file without an extension is not allowed by route 'pictures'; allowed: jpg, png"),
    ])
    func `a refusal says why to a person`(path: String, size: Int64, reason: String) throws {
        #expect(plan(try table(), arrival(FilePath(path), size: size)).refusal == reason)
    }

    @Test func `the first route that matches decides`() throws {
        let table = try table()
        #expect(table.route(for: "gigs/x/A.MP4", size: 5)?.name == "gigs")
        #expect(table.route(for: "gigs/x/a.tar.GZ", size: 5)?.name == "gigs")
        #expect(table.route(for: "gigs/a.mp4", size: 0)?.name == "pictures")
        #expect(table.route(for: "gigs/a.gz", size: 0)?.name == "pictures")
        #expect(table.route(for: "b/gigs/a.mp4", size: 1001) == nil)
        guard case .unmatched = plan(table, arrival("x.jpg", size: 1001)) else {
            Issue.record("matched")
            return
        }
        #expect(table.settle(for: "gigs/a.mp4") == .seconds(9))
        #expect(table.settle(for: "a.jpg") == nil)
    }

    @Test func `a file is quiet for as long as the route asks for that takes it, not one that only might`() throws {
        var film = RouteMatch(minSize: 1000)
        film.mediaTypes = [try MediaTypePattern("video/*")]
        let table = RouteTable([
            Route(name: "films", match: film, to: ["a"], settle: .seconds(2)),
            Route(name: "large", match: RouteMatch(minSize: 1000), to: ["a"], settle: .seconds(60)),
            Route(name: "scans", match: RouteMatch(extensions: ["pdf"]), to: ["a"], settle: .seconds(30)),
            Route(name: "rest", to: ["a"]),
        ])
        let root = Duration.seconds(5)
        #expect(table.shortestSettle(for: "a.pdf", root: root) == .seconds(2))
        #expect(table.longestSettle(for: "a.pdf", size: 999, root: root) == .seconds(30))
        #expect(table.longestSettle(for: "a.jpg", size: 999, root: root) == root)
        // A film or not: its content says so later.
        #expect(table.longestSettle(for: "a.pdf", size: 1000, root: root) == .seconds(60))
        let plain = RouteTable([Route(name: "all", to: ["a"], settle: .seconds(9))])
        #expect(plain.shortestSettle(for: "a", root: root) == .seconds(9))
        #expect(plain.longestSettle(for: "a", size: 1, root: root) == nil)
        #expect(RouteTable([]).shortestSettle(for: "a", root: root) == nil)
        #expect(try self.table().shortestSettle(for: "b", root: root) == root)
    }

    @Test func `a plan is as urgent as its route`() throws {
        var route = Route(name: "all", to: ["r2"])
        for priority in Priority.allCases {
            route.priority = priority
            let made = try #require(plan(RouteTable([route]), arrival("a")).made)
            #expect(made.priority == priority && Priority(rank: priority.rank) == priority)
        }
        #expect(Priority.ranked == [.high, .normal, .low])
        #expect(Priority(rank: 9) == .normal)
    }

    @Test func `a plan holds all that admission needs`() throws {
        let route = Route(
            name: "all", category: "shots", key: try KeyTemplate("{owner}/{sha256:4}_{name}"), owner: "me", to: ["a"],
            with: ["label": try KeyTemplate("{stem} {seq}")], onSuccess: .archive, onFailure: .quarantine,
            retry: RetryPolicy(attempts: 9))
        let table = RouteTable([route])
        let digest = Digest(.sha256, Array(repeating: 0xCD, count: 32))
        let steps: [(FileProperties, Set<FileProperty>)] = [
            (FileProperties(), [.sha256, .sequence]), (FileProperties(sha256: digest), [.sequence]),
        ]
        for (facts, missing) in steps {
            guard case .needs(let asked) = plan(table, arrival("d/My shot.GLB"), facts: facts), asked == missing else {
                Issue.record("\(missing) not asked for")
                continue
            }
        }
        let plan = plan(table, arrival("d/My shot.GLB"), facts: FileProperties(sha256: digest, sequence: 3)).made
        var expected = Plan(
            route: "all", category: "shots", key: "me/cdcd_My_shot.GLB", mediaType: "model/gltf-binary",
            with: ["label": "My shot 3"], destinations: ["a"], onSuccess: .archive, onFailure: .quarantine,
            retry: RetryPolicy(attempts: 9))
        expected.digests = [digest]
        #expect(plan == expected)
    }

    @Test func `a trace says what each route missed`() throws {
        let table = try table()
        #expect(table.trace(arrival("x/a.jpg")).map(\.mismatch) == ["path is not under 'gigs/**'", nil])
        #expect(
            table.trace(arrival("gigs/a.jpg")).map(\.mismatch) == ["extension 'jpg' is not one of mp4, tar.gz", nil])
        let empty = table.trace(arrival("gigs/a.mp4", size: 0))
        #expect(empty.map(\.mismatch) == ["0 bytes is under the minimum size of 1 byte", nil])
        #expect(
            table.trace(arrival("a.jpg", size: 2000)).last?.mismatch == "2 KiB is over the maximum size of 1000 bytes")
        #expect(table.trace(arrival("gigs/a.mp4")).map(\.mismatch) == [nil])
    }

    @Test(arguments: [
        ("jpg", "images", "image/jpeg"), ("CR3", "images", "image/x-canon-cr3"), ("heic", "images", "image/heic"),
        ("mov", "videos", "video/quicktime"), ("pdf", "documents", "application/pdf"),
        ("glb", "models", "model/gltf-binary"),
        ("gltf", "models", "model/gltf+json"), ("usdz", "models", "model/vnd.usdz+zip"), ("obj", "models", "model/obj"),
        ("usdc", "models", "application/octet-stream"), ("stl", "models", "model/stl"), ("flac", "audio", "audio/flac"),
        ("ply", "models", "application/octet-stream"), ("exe", "uploads", "application/octet-stream"),
        ("", "uploads", "application/octet-stream"),
    ])
    func `kinds are known by extension`(ext: String, category: String, mediaType: String) {
        #expect(MediaType.category(byExtension: ext) == category)
        #expect(MediaType.byExtension(ext) == mediaType)
    }

    @Test func `a file is counted as ignored once, and its kind is said once`() {
        var tally = IgnoreCounts(fileLimit: 4, groupLimit: 2)
        let paths: [FilePath] = ["a/x.TXT", "a/x.TXT", "a/y.txt", "b/x.txt", "c/x.txt", "d/x.txt"]
        let isNew = paths.map { tally.count($0) }
        #expect(isNew == [true, false, false, true, true, false])
        #expect(tally.overflow == 2 && tally.counts.count == 2 && tally.total == 5)
        #expect(tally.counts.values.reduce(tally.overflow, +) == tally.total)
    }
}

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

    private func arrival(_ path: FilePath) -> FoundFile {
        FoundFile(
            root: "/drop", path: path,
            identity: FileIdentity(size: 100, modified: 0, changed: 0, inode: 1, device: 1))
    }

    private func decide(_ table: RouteTable, _ path: FilePath, _ mediaType: String?) -> RoutingResult {
        var facts = FileProperties()
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
            #expect(decide(table, "a.txt", type).made?.route == route)
        }
        #expect(table.candidates(for: "a.txt", size: 1).map(\.name) == ["videos", "text"])
        #expect(table.candidates(for: "a.jpg", size: 1).map(\.name) == ["videos", "pictures"])
        var facts = FileProperties()
        facts.mediaType = "text/plain"
        let trace = table.trace(arrival("a.txt"), facts: facts)
        #expect(trace.map(\.mismatch) == ["its content is text/plain, not video/*", nil])
    }

    @Test(arguments: [
        ("evil.mp4", "its name says video/mp4"), ("evil", "its name does not tell"),
        ("evil.xyz", "its name does not tell"),
    ])
    func `a rejection names what the file is and what it is called`(path: FilePath, named: String) throws {
        #expect(
            decide(try table(), path, "application/x-dosexec").refusal
                == "its content is application/x-dosexec, \(named); route 'pictures' takes image/*, application/pdf")
    }

    @Test func `a type that the name does not tell is that of the content`() throws {
        for (name, type) in [("scan", "image/png"), ("scan.jpg", "image/jpeg")] as [(FilePath, String)] {
            #expect(decide(try table(), name, "image/png").made?.mediaType == type)
        }
    }

    @Test func `what is made of a file waits until it is known that it is accepted`() throws {
        var route = Route(name: "videos", validate: Validation(maxSize: 1000), to: ["a"])
        route.derive = [
            DeriveRule.Preset.ffmpeg.rule,
            DeriveRule(name: "all", command: ["p", "{in}", "-o={out}"], suffix: ".x"),
        ]
        let table = RouteTable([route])
        #expect(table.derivations(of: arrival("A.MP4"), facts: FileProperties()).map(\.name) == ["thumbnail", "all"])
        #expect(table.derivations(of: arrival("a.txt"), facts: FileProperties()).map(\.name) == ["all"])
        #expect(route.derive[1].arguments(in: "/i", out: "/o") == ["p", "/i", "-o=/o"])
        #expect(table.adopting.derivations(of: arrival("a.txt"), facts: FileProperties()).isEmpty)
        var large = arrival("a.txt")
        large.identity.size = 1001
        #expect(table.derivations(of: large, facts: FileProperties()).isEmpty)
        let made = Companion(path: "1.thumb.jpg", kind: .derived, ending: ".thumb.jpg")
        #expect(made.key(beside: "k/a.mp4", of: "a.mp4") == "k/a.mp4.thumb.jpg")
    }
}

struct UnitTests: SettlerTimes {
    private let gig = UnitClock.Unit(folder: "gigs/X", route: "gigs")

    private func route(_ patterns: String..., completion: Completion = .quiet) throws -> Route {
        Route(
            name: "gigs", match: RouteMatch(paths: try patterns.map { try GlobPattern($0) }), to: ["a"], unit: .folder,
            completion: completion)
    }

    @Test(arguments: [
        ("gigs/**", "gigs/X/a.mp4", "gigs/X"), ("gigs/**", "gigs/X/raw/deep/a.mp4", "gigs/X"),
        ("gigs/**", "gigs/a", ""),
        ("gigs/2026/*/raw/**", "gigs/2026/X/raw/a", "gigs/2026/X"), ("/gigs", "gigs/X/a", "gigs/X"),
        ("gigs/2026", "gigs/2026/X/a", "gigs/2026/X"), ("*.mp4", "X/Y/a.mp4", "X"), ("*.mp4", "a.mp4", ""),
        ("**/raw/*", "X/raw/a", "X"), ("g[i]gs/**", "gigs/X/a", "gigs"), ("other/**", "gigs/X/a", ""),
    ])
    func `a unit is the first folder below the fixed part of the pattern`(
        pattern: String, path: String, expected: String
    ) throws {
        #expect(try route(pattern).unit(of: FilePath(path)) == (expected.isEmpty ? nil : FilePath(expected)))
    }

    @Test func `without a pattern it is the first folder below the root`() throws {
        #expect(try route().unit(of: "X/Y/a") == "X")
        #expect(try route().unit(of: "a") == nil)
        #expect(Route(name: "files", to: ["a"]).unit(of: "X/a") == nil)
        #expect(try route("a/**", "gigs/**").unit(of: "gigs/X/a") == "gigs/X")
    }

    @Test func `a DONE in a unit's folder is its marker`() throws {
        let table = RouteTable([try route("gigs/**", completion: .marker)])
        #expect(table.unitMarked(by: "gigs/X/DONE") == "gigs/X")
        for path in ["gigs/DONE", "gigs/X/Y/DONE", "gigs/X/done", "other/X/DONE", "DONE"] as [FilePath] {
            #expect(table.unitMarked(by: path) == nil && table.fileMarked(by: path) == nil, "\(path)")
        }
        #expect(RouteTable([try route("gigs/**")]).unitMarked(by: "gigs/X/DONE") == nil)
        #expect(RouteTable([try route(completion: .marker)]).unitMarked(by: "X/DONE") == "X")
    }

    @Test func `a unit is due when it has been quiet`() {
        var clock = UnitClock()
        clock.open(gig, settle: .seconds(5), completion: .quiet, at: at(0))
        #expect(clock.nextDeadline == at(5) && clock.due(at: at(4.9)).isEmpty)
        clock.touch("gigs/X/raw/a.mp4", at: at(4))
        clock.touch("gigs/Y/a.mp4", at: at(8))
        #expect(clock.due(at: at(8.9)).isEmpty)
        #expect(clock.nextDeadline == at(9))
        #expect(clock.due(at: at(9)) == [gig])
        clock.putOff(gig, for: .seconds(2), at: at(9))
        #expect(clock.due(at: at(10)).isEmpty && clock.due(at: at(11)) == [gig])
        clock.close(gig)
        #expect(clock.isEmpty && clock.due(at: at(99)).isEmpty && clock.nextDeadline == nil)
    }

    @Test func `a unit with a marker is looked at when that may be there, never for being quiet`() {
        var clock = UnitClock()
        clock.open(gig, settle: .seconds(5), completion: .marker, at: at(0))
        // The marker may have been first.
        #expect(clock.due(at: at(0)) == [gig])
        clock.touch("gigs/X/a.mp4", at: at(1))
        #expect(clock.nextDeadline == nil && clock.due(at: at(1000)).isEmpty)
        clock.markerSeen(in: "gigs/Y", at: at(1000))
        #expect(clock.due(at: at(1000)).isEmpty)
        clock.markerSeen(in: "gigs/X", at: at(1001))
        #expect(clock.due(at: at(1001)) == [gig])
    }

    @Test func `two routes may have units of one folder, each with its own time`() {
        var clock = UnitClock()
        let other = UnitClock.Unit(folder: "gigs/X", route: "other")
        clock.open(gig, settle: .seconds(5), completion: .quiet, at: at(0))
        clock.open(other, settle: .seconds(1), completion: .quiet, at: at(0))
        #expect(clock.due(at: at(1)) == [other])
        clock.close(other)
        #expect(clock.due(at: at(5)) == [gig])
    }
}

struct ChecklistGapsTests {
    @Test(
        arguments: [
            ("Photo one.JPG", nil, "images/1729446000000_Photo_one.JPG"),
            ("Photo one.JPG", "user123", "images/user123/1729446000000_Photo_one.JPG"),
            ("clip.mov", "user123", "videos/user123/1729446000000_clip.mov"),
            ("price list.pdf", nil, "documents/1729446000000_price_list.pdf"),
            ("spaceship.glb", "user123", "models/user123/1729446000000_spaceship.glb"),
            ("song.flac", nil, "audio/1729446000000_song.flac"),
            ("data.xyzzy", nil, "uploads/1729446000000_data.xyzzy"),
            ("Makefile", nil, "uploads/1729446000000_Makefile"),
        ] as [(FilePath, String?, String)])
    func `the default key is folder by kind, owner, time and clean name`(path: FilePath, owner: String?, key: String) {
        let table = RouteTable([Route(name: "all", owner: owner, to: ["r2"])])
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let moment = WallTime(milliseconds: 1_729_446_000_000)
        let decision = table.plan(
            FoundFile(root: "/drop", path: path, identity: identity), facts: FileProperties(), at: moment,
            zone: "UTC")
        #expect(decision.made?.key == key)
    }
}
