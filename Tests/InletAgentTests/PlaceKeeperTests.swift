import Foundation
import InletCore
import InletFleet
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Shares: their markers, and which of two stations lists them.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PlaceKeeperTests {
    @Test func `the first station makes the marker, once, and another one takes it`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        let directory = try TemporaryDirectory()
        try await fleet.placed("one", share, in: directory).run { one in
            try await one.lists()
            let marker = try #require(share.held)
            #expect(try fleet.run("SELECT marker FROM inlet.place WHERE name = 'media'") == [[marker]])
            #expect(try await one.journal.placeMarker("media")?.isMade == true)
            try await eventually("it says so") { one.events.count("fleet.place_held") == 1 }
        }
        let marker = share.held
        try await fleet.placed("one", share, in: directory).run { one in
            try await one.lists()
            #expect(share.held == marker)
        }
    }

    @Test func `without its marker nothing of a share is read, and no station makes another one`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.placed("one", share).run { one in
            try await one.lists()
            let marker = try #require(share.held)
            try share.unmark()
            try await eventually("it pauses") { one.trouble?.contains("echo \(marker)") == true }
            try await eventually("its root is guarded") { one.isGuarded }
            #expect(one.places?.usable.isEmpty == true)
            try share.drop("a.mov")
            try await eventually("it gave the share back") {
                try fleet.number("SELECT count(*) FROM inlet.place WHERE holder IS NULL") == 1
            }
            #expect(try fleet.admitted == 0 && share.held == nil)
            try await eventually("it says so") { one.events.count("fleet.place_lost") == 1 }
            // A station that never saw the share makes none either.
            try await fleet.placed("two", share, seat: 2).run { two in
                try await eventually("it pauses too") { two.trouble?.contains("echo \(marker)") == true }
                #expect(share.held == nil)
            }
            try share.mark(marker)
            try await one.lists()
            try await eventually("the file is admitted") { try fleet.admitted == 1 }
        }
    }

    @Test func `another share's marker pauses, and the words name both`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.placed("one", share).run { one in
            try await one.lists()
            let marker = try #require(share.held)
            let other = UUID().uuidString.lowercased()
            try share.mark(other)
            try await eventually("it pauses") {
                one.trouble.map { $0.contains("place_differs") && $0.contains(marker) && $0.contains(other) } ?? false
            }
            try share.drop("a.mov")
            try await eventually("its root is guarded") { one.isGuarded }
            #expect(try fleet.admitted == 0)
        }
    }

    @Test func `one station lists, and another takes over when it is drained or stops`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        func order(_ state: String) throws {
            try fleet.run("UPDATE inlet.agent SET state = '\(state)' WHERE name = 'two'")
        }
        try await fleet.placed("two", share, seat: 2).run { two in
            try await two.isLive()
            try await two.lists()
            try order("draining")
            try await fleet.placed("one", share).run { one in
                try await one.lists()
                try order("active")
                try await two.standsBy()
                #expect(two.places?.holds(share.root) == false && two.events.count("fleet.place_lost") == 1)
            }
            try await two.lists()
            try share.drop("a.mov")
            try await eventually("its files are admitted") { try fleet.admitted == 1 }
            try await eventually("both times were said") { two.events.count("fleet.place_held") == 2 }
        }
    }

    @Test func `an empty folder that is no mount gets its marker with its first file`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try FileManager.default.removeItem(atPath: share.root.appending("in").string)
        try await fleet.placed("one", share).run { one in
            try await one.isLive()
            try await eventually("it says so") { one.trouble?.contains("is empty") == true }
            #expect(try fleet.number("SELECT count(*) FROM inlet.place") == 0 && share.held == nil)
            try share.drop("a.mov")
            try await one.lists()
            try await eventually("the file is admitted") { try fleet.admitted == 1 }
        }
    }

    @Test func `a share that is not there does not become its mount point`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        var scene = try fleet.placed("one", share)
        scene.watch[0].path = share.root.appending("nowhere")
        try await scene.run { one in
            try await one.isLive()
            try await eventually("it says so") { one.trouble?.contains("mount it") == true }
            #expect(try fleet.number("SELECT count(*) FROM inlet.place") == 0)
        }
    }
}

/// Markers in files.
struct PlaceMarkerTests {
    private static let id = "0f8e4f7a-3d3a-4c0e-9a52-6d2f6a3b1c11"

    @Test(arguments: [
        ("\(id)\n", PlaceMarker.found(id)), ("  \(id.uppercased())  ", .found(id)),
        ("", .unreadable("it holds no UUID")), ("\(id) \(id)", .unreadable("it holds no UUID")),
    ])
    func `a marker is one UUID`(text: String, expected: PlaceMarker) throws {
        let share = try Share()
        try share.directory.makeDirectory("share/.inlet")
        try share.mark(text)
        #expect(PlaceMarker.read(in: share.root) == expected)
    }

    @Test func `no first marker is made where a mount may be missing`() throws {
        let directory = try TemporaryDirectory()
        let root = try #require(try directory.makeDirectory("share").realPath)
        func doubt(mounts: [FilePath] = [], planned: [FilePath] = []) -> String? {
            let lines = (["/"] + mounts).enumerated().map { number, point in
                "\(number + 1) \(number == 0 ? 0 : 1) 8:\(number) / \(point.string) rw - ext4 /dev/x rw"
            }
            let table = MountTable(parsing: Array(lines.joined(separator: "\n").utf8))
            return PlaceMarker.doubt(about: root, in: FileSystemLayout(mounts: table, planned: planned) { $0.realPath })
        }
        #expect(doubt()?.contains("is empty") == true)
        #expect(doubt(mounts: [root]) == nil)
        let above = root.removingLastComponent()
        #expect(doubt(mounts: [root], planned: [above])?.contains("mounted at \(above.display),") == true)
        // The agent's own folder is no file of the share.
        try directory.makeDirectory("share/.inlet")
        #expect(doubt() != nil)
        try directory.write(Array("content".utf8), to: "share/a.mov")
        #expect(doubt() == nil && doubt(mounts: [root], planned: [root]) == nil)
        #expect(doubt(planned: [root]) != nil)
    }

    @Test func `a marker is made once, and not through a symlink`() throws {
        let share = try Share()
        #expect(PlaceMarker.read(in: share.root) == .missing)
        #expect(PlaceMarker.read(in: share.root.appending("nowhere")) == .away)
        try PlaceMarker.make(Self.id, in: share.root)
        #expect(PlaceMarker.read(in: share.root) == .found(Self.id))
        let error = #expect(throws: SystemError.self) { try PlaceMarker.make(Self.id, in: share.root) }
        #expect(error?.isTaken == true)
        try share.unmark()
        let target = try share.drop("elsewhere", Self.id)
        try DurableFile.makeLink(share.marker, to: target)
        guard case .unreadable = PlaceMarker.read(in: share.root) else {
            Issue.record("a symlink was followed")
            return
        }
    }
}
