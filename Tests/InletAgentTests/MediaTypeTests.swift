import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@Suite struct MediaTypeTests {
    /// The head of a PNG.
    private static let picture: [UInt8] = [
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
        2,
        0, 0, 0,
    ]
    /// The head of a program for DOS.
    private static let program = Array("MZ".utf8) + [UInt8](repeating: 0, count: 126)

    @Test func `a program that is called a video is rejected, with what it is and what it is called`() async throws {
        var scene = try Scene()
        scene.route.validate.mediaTypes = [try MediaTypePattern("video/*"), try MediaTypePattern("image/*")]
        try await scene.run { stage in
            try scene.directory.write(Self.program, to: "drop/evil.mp4")
            try scene.directory.write(Self.picture, to: "drop/picture")
            let job = try await stage.finished("evil.mp4", .rejected)
            let reason = try #require(job.file.reason)
            #expect(reason.hasPrefix("its content is application/"))
            #expect(reason.hasSuffix(", its name says video/mp4; route 'all' takes video/*, image/*"))
            let accepted = try await stage.finished("picture")
            #expect(accepted.file.mediaType == "image/png")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["picture"])
    }

    @Test func `a route takes files by what they are`() async throws {
        var scene = try Scene()
        scene.route.match.mediaTypes = [try MediaTypePattern("image/png")]
        scene.route.key = try KeyTemplate("pictures/{name}")
        scene.others = [Route(name: "others", key: try KeyTemplate("others/{name}"), to: ["here"])]
        try await scene.run { stage in
            try scene.directory.write(Self.picture, to: "drop/a.txt")
            try scene.drop("b.png", "words")
            try await stage.finished("a.txt")
            try await stage.finished("b.png")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["others/b.png", "pictures/a.txt"])
    }
}
