import InletCore
import InletFleet
import InletTestSupport
import SystemPackage
import Testing

/// The calls for shares, answered by a real server.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct LinkPlaceTests {
    private let marker = "00000000-0000-4000-8000-0000000000aa"

    private func version(_ path: String, size: Int64 = 7) -> PlaceVersion {
        PlaceVersion(of: FilePath(path), size: size, modified: 1_000_000_000)
    }

    private func row(_ path: String, to destination: Int32, _ address: String = "s3") -> FleetWorkRow {
        let version = version(path)
        return FleetWorkRow(
            version: version, name: Array(path.utf8), size: 7, priority: 1, destination: destination,
            ref: version.ref(in: marker, to: address), key: "media/\(path)",
            plan: Array(#"{"route":"all","labels":{"a":"\"b\""}}"#.utf8))
    }

    /// Two stations that are live and members of a share.
    private func whileTwoShare(
        _ world: LinkWorld, _ body: (Station, Station, Int32, Int32) async throws -> Void
    ) async throws {
        let one = try world.link(try world.join("station-1"))
        let two = try world.link(try world.join("station-2"))
        try await one.whileLive {
            try await two.whileLive {
                let first = try await one.link.place(name: "media", marker: marker)
                #expect(first.marker == marker && first.isNew)
                let second = try await two.link.place(name: "media", marker: marker)
                #expect(second.place == first.place && second.marker == marker && !second.isNew)
                try await body(one, two, first.place, try await one.destination())
            }
        }
    }

    @Test func `a share is one by its marker, and one station lists it`() async throws {
        try await whileTwoShare(try LinkWorld()) { one, two, place, destination in
            let other = try await two.link.place(name: "media", marker: "00000000-0000-4000-8000-0000000000bb")
            #expect(other.marker == marker && !other.isNew)
            let held = try await one.link.hold([place])
            #expect(held.map(\.place) == [place] && held.map(\.isTaken) == [true])
            #expect(try await one.link.hold([place]).map(\.isTaken) == [false])
            #expect(try await two.link.hold([place]).isEmpty)
            let keys = (["media/a.mov"], [Int64(5)])
            #expect(try await one.link.reserve(destination, keys.0, keys.1, place: place).granted == [true])
            let refused = try await refusal {
                _ = try await two.link.reserve(destination, keys.0, keys.1, place: place)
            }
            #expect(refused.code == .fenced)
            try await one.link.release([place])
            let next = try await two.link.hold([place])
            #expect(next.map(\.isTaken) == [true] && next[0].fence > held[0].fence)
            #expect(try await two.link.reserve(destination, keys.0, keys.1, place: place).granted == [true])
        }
    }

    @Test func `a file is admitted once, delivered by another station, and finished`() async throws {
        try await whileTwoShare(try LinkWorld()) { one, two, place, destination in
            let fence = try #require(try await one.link.hold([place]).first).fence
            let rows = [row("day \"1\"/ä\u{1}.mov", to: destination), row("b.mov", to: destination)]
            let versions = rows.map(\.version)
            #expect(try await one.link.known(place, versions) == [false, false])
            let (mark, admitted) = try await one.link.admit(place, fence: fence, rows)
            #expect(admitted == [true, true] && one.memory.seen >= mark)
            #expect(try await one.link.admit(place, fence: fence, rows).admitted == [true, true])
            #expect(try await two.link.known(place, versions) == [true, true])
            let stale = try await refusal { _ = try await one.link.admit(place, fence: fence - 1, rows) }
            #expect(stale.code == .fenced)

            let found = try await two.link.claim([place], most: 10)
            let claims = versions.compactMap { version in found.first { $0.version == version } }
            #expect(found.count == 2 && claims.map(\.key) == rows.map(\.key))
            #expect(claims.map(\.name) == rows.map(\.name) && claims.map(\.size) == [7, 7])
            #expect(claims.allSatisfy { $0.destination == destination && !$0.isFinishing && $0.notes == nil })
            #expect(JSON.value(claims[0].plan)?["labels"]?["a"]?.string == "\"b\"")
            let noted = try await two.link.note([
                (claims[0].work, claims[0].fence, Array(#"{"upload": "dQ=="}"#.utf8)), (claims[1].work, 99, nil),
            ])
            #expect(noted.refused == [nil, .fenced])
            let ends = try await two.link.settle([
                FleetSettlement(work: claims[0].work, fence: claims[0].fence, .delivered),
                FleetSettlement(work: claims[1].work, fence: 99, .delivered),
                FleetSettlement(
                    work: claims[1].work, fence: claims[1].fence, .failed, code: "too_large", reason: "it is \"big\""),
            ]).settled
            #expect(ends.map(\.refused) == [nil, .fenced, nil] && ends.map(\.hasFailed) == [false, false, true])
            let finishes = ends.compactMap(\.finish).map { FleetSettlement(work: $0, fence: 1, .finished) }
            #expect(finishes.count == 2)
            #expect(try await two.link.settle(finishes).settled.map(\.refused) == [nil, nil])
            #expect(try await one.link.claim([place], most: 10).isEmpty)
            #expect(try await one.link.settle([]).settled.isEmpty)
            #expect(try await one.link.note([]).refused.isEmpty)
        }
    }

    @Test func `versions of a station's own are admitted by nobody, until it says that it sent nothing of them`()
        async throws
    {
        try await whileTwoShare(try LinkWorld()) { one, two, place, destination in
            let rows = ["own.mov", "theirs.mov"].map { row($0, to: destination) }
            let versions = rows.map(\.version)
            let fence = try #require(try await two.link.hold([place]).first).fence
            #expect(try await two.link.admit(place, fence: fence, [rows[1]]).admitted == [true])
            for _ in 0..<2 {
                let (mark, own) = try await one.link.ownVersions(place, versions)
                #expect(own == [true, false] && one.memory.seen >= mark)
            }
            #expect(try await two.link.admit(place, fence: fence, rows).admitted == [false, true])
            #expect(try await one.link.ownVersions(place, versions, are: false).own == [false, false])
            #expect(try await two.link.known(place, versions) == [false, true])
            #expect(try await two.link.admit(place, fence: fence, [rows[0]]).admitted == [true])
        }
    }

    @Test func `claims whose answer was lost come back after a renewal, and the former end nothing`() async throws {
        try await whileTwoShare(try LinkWorld(ttl: "15 s")) { one, two, place, destination in
            let fence = try #require(try await one.link.hold([place]).first).fence
            _ = try await one.link.admit(place, fence: fence, [row("a.mov", to: destination)])
            let lost = try #require(try await two.link.claim([place], most: 5).first)
            _ = try await two.link.note([(lost.work, lost.fence, Array(#"{"upload": "dQ=="}"#.utf8))])
            #expect(try await two.link.claim([place], most: 5).isEmpty)
            let session = two.session
            two.link.renew()
            #expect(two.session != session)
            try await eventually("there is another session") { two.isLive && two.session != session }
            let back = try #require(try await two.link.claim([place], most: 5).first)
            #expect(back.work == lost.work && back.fence > lost.fence && back.takenFrom == nil)
            #expect(JSON.value(back.notes ?? [])?["upload"]?.string == "dQ==")
            let stale = FleetSettlement(work: lost.work, fence: lost.fence, .delivered)
            #expect(try await two.link.settle([stale]).settled.map(\.refused) == [.fenced])
            let renamed = try await two.link.rename(work: back.work, fence: back.fence, to: "media/a_2.mov")
            #expect(renamed.isGranted && two.memory.seen >= renamed.mark)
            let later = FleetSettlement(work: back.work, fence: back.fence, .retry, after: .milliseconds(1))
            #expect(try await two.link.settle([later]).settled.map(\.refused) == [nil])
            try await eventually("it may be claimed again") {
                try await one.link.claim([place], most: 5).map(\.key) == ["media/a_2.mov"]
            }
        }
    }

    @Test func `stations report shares while the fleet recovers, and nobody admits these again`() async throws {
        let world = try LinkWorld(ttl: "15 s")
        try await whileTwoShare(world) { one, two, place, destination in
            try world.run("SELECT inlet.v1_admin_restored(NULL)")
            for station in [one, two] { station.link.renew() }
            try await eventually("both owe a report") { one.isReporting && two.isReporting }
            #expect(try await one.link.place(name: "media", marker: marker).place == place)
            let (open, done) = (row("open.mov", to: destination), row("done.mov", to: destination))
            let keys = [open, done].map(\.key), refs = [open, done].map(\.ref)
            #expect(try await one.link.againKeys(destination, keys, refs, place: place).isEmpty)
            #expect(try await two.link.againKeys(destination, keys, refs).count == 2, "they are the share's")
            try await one.link.againAdmitted(place, [open, done])
            try await one.link.againFinished(place, [done.version])
            for station in [one, two] { try await station.link.againDone(station.link.standing, seen: 0, roster: []) }
            try await eventually("the fleet is open") { one.isLive && two.isLive }
            #expect(try await two.link.known(place, [open.version, done.version]) == [true, true])
            #expect(try await two.link.claim([place], most: 5).map(\.key) == [open.key])
        }
    }
}
