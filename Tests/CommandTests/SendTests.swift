import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet send`, `inlet route` and `inlet config`.
@Suite(.serialized) struct SendTests {
    @Test(arguments: [true, false])
    func `send delivers a file from anywhere and leaves it where it is`(_ running: Bool) async throws {
        try await withSpiral(route: "on_success: delete") { place, sandbox in
            let agent = running ? try await place.run() : nil
            let file = try place.folder.write(bytes(6 << 20), to: "elsewhere/film.mov")
            try await place.inlet("send", file.string, code: 0, says: "film.mov")
            let object = try #require(sandbox.objects().first)
            #expect(try place.content(object.path) == bytes(6 << 20))
            #expect(place.exists(file))
            #expect((agent?.lines("job.finished").count ?? 1) == 1)
            let again = try await place.inlet(
                "send", file.string, code: 0, says: "film.mov: already delivered to store on 20")
            #expect(again.output.contains("; --again sends it") && !again.output.contains("→"))
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(sandbox.traffic.counts[.create] == 1)
            try await place.inlet("send", "--again", file.string, code: 0, says: "film.mov →")
            #expect(sandbox.objects().map(\.versions) == [2])
            // What one way of sending knows the other one does.
            try await agent?.stop()
            let other = running ? nil : try await place.run()
            try await place.inlet("send", file.string, says: "already delivered to store")
            withExtendedLifetime(other) {}
        }
    }

    @Test func `a send that was killed goes on where it stopped`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            let content = bytes(16 << 20)
            let file = try place.folder.write(content, to: "film.mov")
            let killed = try place.start("send", file.string, environment: ["INLET_FAILPOINT": "partUploaded:2"])
            #expect(try await killed.ending() == .signal(SIGKILL))
            #expect(sandbox.traffic.counts[.part] == 2)
            try await place.inlet("send", file.string, code: 0)
            #expect(sandbox.traffic.counts[.part] == 4)
            // Its own: a probe opens none.
            #expect(sandbox.traffic.counts[.create] == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
        }
    }

    @Test func `send names a destination, and an unreachable one is 69`() async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let file = try place.folder.write(bytes(10), to: "a.txt")
        try await place.inlet("send", "--to", "store", file.string, code: 69)
        try await place.inlet("send", "--to", "stor", file.string, code: 1, errors: "did you mean 'store'?")
    }

    @Test func `route says which route takes a file, why not, and under which key`() async throws {
        let place = try Place(route: ["match: { extensions: [txt] }", "validate: { max_size: 100 }"])
        try place.put("notes/fits.txt", bytes(10))
        try place.put("notes/large.txt", bytes(101))
        let fits = try await place.inlet(
            "route", place.drop.appending("notes").appending("fits.txt").string, code: 0, says: "route all takes it")
        #expect(fits.output.contains("notes/fits.txt"))
        try await place.inlet(
            "route", place.drop.appending("notes").appending("large.txt").string, code: 1,
            says: "rejected: 101 bytes is over the limit")
        // Names before and after an option, one of them from where the command is called.
        let many = try await place.inlet(
            "route", place.drop.appending("notes/fits.txt").string, place.drop.appending("b.txt").string, "--config",
            place.configuration.description, "c.txt")
        let told = many.output.split(separator: "\n").filter { $0.hasPrefix("/") }
        #expect(told.count == 3 && told[1].hasSuffix("/b.txt") && told[2].hasSuffix("/c.txt"), "\(many.output)")
        try await place.inlet(
            "route", place.drop.appending("x.png").string, code: 1, says: "no route takes it", "taken as an empty file")
        try await place.inlet("route", "/elsewhere/a.txt", says: "not below any watched folder")
        try await place.inlet("queue", "list", says: "The queue is empty")
    }

    @Test func `route says which file a sidecar goes with`() async throws {
        let place = try Place(route: ["match: { extensions: [glb] }", "sidecars: { extensions: [png] }"])
        try place.put("a/ship.glb", bytes(10))
        try place.put("a/ship.png", bytes(10))
        try place.put("a/boat.png", bytes(10))
        let picture = try await place.inlet(
            "route", place.drop.appending("a").appending("ship.png").string, code: 0,
            says: "goes with a/ship.glb, by route all")
        #expect(!picture.output.contains("ignored"), "\(picture.output)")
        try await place.inlet(
            "route", place.drop.appending("a").appending("boat.png").string, code: 1, says: "it would be ignored")
    }

    @Test func `route shows what a sidecar changes, and what is wrong with it`() async throws {
        let place = try Place(key: "{name}", route: ["sidecars: { metadata: true }"])
        try place.put("clip.mp4", bytes(10))
        try place.put("clip.mp4.yaml", Data("label: One\n".utf8))
        let clip = place.drop.appending("clip.mp4").string
        try await place.inlet("route", clip, code: 0, says: "the sidecar's field 'label' is none of the destination's")
        try place.put("clip.mp4.yaml", Data("label: [One\n".utf8))
        try await place.inlet("route", clip, code: 1, says: "rejected: clip.mp4.yaml:2:1: this is not valid YAML")
    }

    @Test func `route says where a date of capture comes from`() async throws {
        let place = try Place(key: "{captured:YYYY-'W'ww}/{captured:yyyy-MM-dd}_{name}")
        try place.put("dated.jpg", Data(DatedPicture.jpeg("2021:01:03 07:08:09")))
        try place.put("plain.jpg", bytes(10))
        try await place.inlet(
            "route", place.drop.appending("dated.jpg").string, code: 0, says: "key      2020-W53/2021-01-03_dated.jpg",
            "captured 2021-01-03T07:08:09.000 (EXIF DateTime)")
        for name in ["plain.jpg", "not-there.jpg"] {
            let other = try await place.inlet(
                "route", place.drop.appending(name).string, code: 0, says: "note     the file names no date of capture")
            #expect(!other.output.contains("captured 20"), "\(other.output)")
        }
    }

    @Test func `config show fills in defaults and hides secrets`() async throws {
        let place = try Place(.spiral(1))
        let shown = try await place.inlet("config", "show", code: 0, says: "***", "parallel_parts: 4", "rescan:")
        #expect(!shown.output.contains(ConfigText.apiKey))
        try place.configure(
            text: shown.output.replacing("\"***\"", with: "some-key").replacing("***", with: "some-key"))
        let again = try await place.inlet("config", "show", code: 0)
        #expect(again.output == shown.output)
    }

    @Test func `config schema prints the schema that the repository holds`() async throws {
        let place = try Place()
        let process = try await InletProcess.run(["config", "schema"], in: place.folder.path, code: 0)
        let kept = try place.content(Repository.root.appending("config").appending("inlet.schema.json"))
        #expect(process.output == String(decoding: kept, as: UTF8.self))
    }

    @Test func `the demo ends well twice in a row in the same folder`() async throws {
        let folder = try TemporaryDirectory()
        for _ in 1...2 {
            try await InletProcess.run(
                ["demo", "--once", "--dir", folder.path.appending("demo").string], in: folder.path, code: 0,
                says: "stored objects, pictures and models compared byte for byte: all equal", "→ stage: gigs/",
                "→ archive: gigs/", "→ picture,", "→ data of the product", "product.json", "→ model of space 'atrium'",
                "→ preview of space 'atrium'")
        }
    }
}
