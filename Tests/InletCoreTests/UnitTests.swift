import InletCore
import SystemPackage
import Testing

struct UnitTests {
    private static let start = ContinuousClock.now
    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }
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
        #expect(table.marked(by: "gigs/X/DONE") == .unit("gigs/X"))
        for path in ["gigs/DONE", "gigs/X/Y/DONE", "gigs/X/done", "other/X/DONE", "DONE"] as [FilePath] {
            #expect(table.marked(by: path) == nil, "\(path)")
        }
        #expect(RouteTable([try route("gigs/**")]).marked(by: "gigs/X/DONE") == nil)
        #expect(RouteTable([try route(completion: .marker)]).marked(by: "X/DONE") == .unit("X"))
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
