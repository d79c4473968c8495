import Foundation
import SystemPackage
import Testing

/// What `inlet route` says of `derive:`.
@Suite struct DeriveRouteTests {
    @Test func `route says what would be made of a file, by which program and under which key`() async throws {
        let place = try Place(route: [
            "derive: [{ name: copy, command: [cp, \"{in}\", \"{out}\"], extensions: [mp4], suffix: .copy.txt }, "
                + "{ name: none, command: [no-such-program, \"{in}\", \"{out}\"], suffix: .none }]"
        ])
        try place.put("a/clip.mp4", Data("content".utf8))
        try place.put("a/words.txt", Data("content".utf8))
        try await place.inlet(
            "route", place.drop.appending("a").appending("clip.mp4").string, code: 0,
            says: "derives  copy: a/clip.mp4.copy.txt, made by /", "/cp, to store",
            "derives  none: there is no program 'no-such-program'")
        let words = try await place.inlet("route", place.drop.appending("a").appending("words.txt").string)
        #expect(!words.output.contains("derives  copy"), "\(words.output)")
    }
}
