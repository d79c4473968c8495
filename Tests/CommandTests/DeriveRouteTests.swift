import Foundation
import SystemPackage
import Testing

/// What `inlet route` says of `derive:`.
@Suite struct DeriveRouteTests {
    @Test func `route says what would be made of a file, by which program and under which key`() async throws {
        var config = ConfigText()
        config.route += [
            "derive: [{ name: copy, command: [cp, \"{in}\", \"{out}\"], extensions: [mp4], suffix: .copy.txt }, "
                + "{ name: none, command: [no-such-program, \"{in}\", \"{out}\"], suffix: .none }]"
        ]
        let place = try Place(config)
        try place.put("a/clip.mp4", Data("content".utf8))
        try place.put("a/words.txt", Data("content".utf8))
        let video = try await place.inlet("route", place.drop.appending("a").appending("clip.mp4").string)
        #expect(video.ending == .code(0))
        #expect(video.output.contains("derives  copy: a/clip.mp4.copy.txt, made by /"), "\(video.output)")
        #expect(video.output.contains("/cp, to store"), "\(video.output)")
        #expect(video.output.contains("derives  none: there is no program 'no-such-program'"), "\(video.output)")
        let words = try await place.inlet("route", place.drop.appending("a").appending("words.txt").string)
        #expect(!words.output.contains("derives  copy"), "\(words.output)")
    }
}
