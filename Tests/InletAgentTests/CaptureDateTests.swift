import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@Suite struct CaptureDateTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{captured:yyyy-MM-dd@Europe/Berlin}/{name}")
        // 2020-01-02T12:00:00Z, so that nothing but the picture can know its own day.
        let modified = Date(timeIntervalSince1970: 1_577_966_400)
        let dated = try scene.directory.write(DatedPicture.jpeg("2024:05:06 23:59:58"), to: "drop/dated.jpg")
        let plain = try scene.drop("plain.jpg", "no picture at all")
        for file in [dated, plain] {
            try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file.string)
        }
        return scene
    }

    @Test func `a picture goes where its own date says, another where its mtime says, and that is said`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try await stage.finished("dated.jpg")
            try await stage.finished("plain.jpg")
            #expect(Set(scene.here.record.stored.keys) == ["2024-05-06/dated.jpg", "2020-01-02/plain.jpg"])
            let notes = stage.events.all.compactMap { event in
                if case .fileNote(_, let path, let route, let note) = event { [path.string, route, note] } else { nil }
            }
            let note =
                "the file names no date of capture; {captured} is its modification time, 2020-01-02T12:00:00.000Z"
            #expect(notes == [[stage.root.appending("plain.jpg").string, "all", note]])
        }
    }

    @Test func `a destination's field can be the date of capture`() async throws {
        var scene = try scene()
        scene.route.key = try KeyTemplate("{name}")
        scene.route.with = ["event_date": try KeyTemplate("{captured:yyyy-MM-dd}")]
        try await scene.run { stage in
            let job = try await stage.finished("dated.jpg")
            #expect(job.deliveries.map(\.fields) == [["event_date": "2024-05-06"]])
        }
    }
}
