import InletCore
import SystemPackage
import Testing

struct RouteTableTests {
    private func arrival(_ path: FilePath, size: Int64 = 100) -> Arrival {
        let identity = FileIdentity(size: size, modified: 0, changed: 0, inode: 1, device: 1)
        return Arrival(root: "/drop", path: path, identity: identity)
    }

    private func plan(_ table: RouteTable, _ arrival: Arrival, facts: Facts = Facts()) -> RouteDecision {
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
        guard case .rejected(_, let said) = plan(try table(), arrival(FilePath(path), size: size)) else {
            Issue.record("not rejected")
            return
        }
        #expect(said == reason)
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

    @Test func `a plan is as urgent as its route`() {
        var route = Route(name: "all", to: ["r2"])
        for priority in Priority.allCases {
            route.priority = priority
            guard case .plan(let made) = plan(RouteTable([route]), arrival("a")) else {
                Issue.record("no plan")
                return
            }
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
        let steps: [(Facts, Set<Fact>)] = [(Facts(), [.sha256, .sequence]), (Facts(sha256: digest), [.sequence])]
        for (facts, missing) in steps {
            guard case .needs(let asked) = plan(table, arrival("d/My shot.GLB"), facts: facts), asked == missing else {
                Issue.record("\(missing) not asked for")
                continue
            }
        }
        guard case .plan(let plan) = plan(table, arrival("d/My shot.GLB"), facts: Facts(sha256: digest, sequence: 3))
        else {
            Issue.record("no plan")
            return
        }
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
        #expect(table.trace(arrival("gigs/a.mp4")).map(\.isMatch) == [true])
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
        #expect(Category.byExtension(ext) == category)
        #expect(MediaType.byExtension(ext) == mediaType)
    }

    @Test func `a file is counted as ignored once, and its kind is said once`() {
        var tally = IgnoreTally(fileLimit: 4, groupLimit: 2)
        let paths: [FilePath] = ["a/x.TXT", "a/x.TXT", "a/y.txt", "b/x.txt", "c/x.txt", "d/x.txt"]
        let isNew = paths.map { tally.count($0) }
        #expect(isNew == [true, false, false, true, true, false])
        #expect(tally.overflow == 2 && tally.counts.count == 2 && tally.total == 5)
        #expect(tally.counts.values.reduce(tally.overflow, +) == tally.total)
    }
}
