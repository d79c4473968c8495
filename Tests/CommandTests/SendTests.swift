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
            let sent = try await place.inlet("send", file.string)
            #expect(sent.ending == .code(0), "\(sent.errors)")
            #expect(sent.output.contains("film.mov"))
            let object = try #require(sandbox.objects().first)
            #expect(try place.content(object.path) == bytes(6 << 20))
            #expect(place.exists(file))
            #expect((agent?.lines("job.finished").count ?? 1) == 1)
            let again = try await place.inlet("send", file.string)
            #expect(again.ending == .code(0))
            #expect(again.output.contains("film.mov: already delivered to store on 20"), "\(again.output)")
            #expect(again.output.contains("; --again sends it") && !again.output.contains("→"))
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(sandbox.traffic.counts[.create] == 1)
            let wanted = try await place.inlet("send", "--again", file.string)
            #expect(wanted.ending == .code(0) && wanted.output.contains("film.mov →"), "\(wanted.errors)")
            #expect(sandbox.objects().map(\.versions) == [2])
            // What one way of sending knows the other one does.
            try await agent?.stop()
            let other = running ? nil : try await place.run()
            let last = try await place.inlet("send", file.string)
            #expect(last.output.contains("already delivered to store"), "\(last.output) \(last.errors)")
            withExtendedLifetime(other) {}
        }
    }

    /// More than are handed in at once, one of them named twice and one not there.
    @Test(arguments: [true, false])
    func `many files that are sent by one command all arrive, and are told in their order`(_ running: Bool) async throws
    {
        try await withSpiral { place, sandbox in
            let agent = running ? try await place.run() : nil
            let names = (10..<70).map { "film-\($0).mov" }
            let files = try names.map {
                try place.folder.write(bytes(100) + Data($0.utf8), to: FilePath("elsewhere/\($0)"))
            }
            let absent = place.folder.path.appending("elsewhere").appending("absent.mov")
            let words = files.map(\.string)
            let sent = try await place.inlet(["send", words[0], absent.string] + words)
            #expect(sent.ending == .code(1), "\(sent.errors)")
            #expect(sent.errors.contains("absent.mov: not a regular file, or not there"))
            let told = sent.output.split(separator: "\n").filter { $0.contains("→") }
            #expect(zip(told, names).allSatisfy { $0.contains($1) } && told.count == names.count, "\(sent.output)")
            let stored = try sandbox.objects().map { try place.content($0.path) }
            #expect(Set(stored) == Set(names.map { bytes(100) + Data($0.utf8) }) && stored.count == names.count)
            withExtendedLifetime(agent) {}
        }
    }

    @Test func `a send that was killed goes on where it stopped`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            let content = bytes(16 << 20)
            let file = try place.folder.write(content, to: "film.mov")
            let killed = try place.start("send", file.string, environment: ["INLET_FAILPOINT": "partUploaded:2"])
            #expect(try await killed.ending() == .signal(SIGKILL))
            #expect(sandbox.traffic.counts[.part] == 2)
            let sent = try await place.inlet("send", file.string)
            #expect(sent.ending == .code(0), "\(sent.errors)")
            #expect(sandbox.traffic.counts[.part] == 4)
            // Its own: a probe opens none.
            #expect(sandbox.traffic.counts[.create] == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
        }
    }

    @Test func `send names a destination, and an unreachable one is 69`() async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let file = try place.folder.write(bytes(10), to: "a.txt")
        let down = try await place.inlet("send", "--to", "store", file.string)
        #expect(down.ending == .code(69), "\(down.output) \(down.errors)")
        let unknown = try await place.inlet("send", "--to", "stor", file.string)
        #expect(unknown.ending == .code(1))
        #expect(unknown.errors.contains("did you mean 'store'?"))
    }

    @Test func `route says which route takes a file, why not, and under which key`() async throws {
        var config = ConfigText()
        config.route += ["match: { extensions: [txt] }", "validate: { max_size: 100 }"]
        let place = try Place(config)
        try place.put("notes/fits.txt", bytes(10))
        try place.put("notes/large.txt", bytes(101))
        let fits = try await place.inlet("route", place.drop.appending("notes").appending("fits.txt").string)
        #expect(fits.ending == .code(0))
        #expect(fits.output.contains("route all takes it") && fits.output.contains("notes/fits.txt"))
        let large = try await place.inlet("route", place.drop.appending("notes").appending("large.txt").string)
        #expect(large.ending == .code(1))
        #expect(large.output.contains("rejected: 101 bytes is over the limit"), "\(large.output)")
        // Names before and after an option, one of them from where the command is called.
        let many = try await place.inlet(
            "route", place.drop.appending("notes/fits.txt").string, place.drop.appending("b.txt").string, "--config",
            place.configuration.description, "c.txt")
        let told = many.output.split(separator: "\n").filter { $0.hasPrefix("/") }
        #expect(told.count == 3 && told[1].hasSuffix("/b.txt") && told[2].hasSuffix("/c.txt"), "\(many.output)")
        let image = try await place.inlet("route", place.drop.appending("x.png").string)
        #expect(image.ending == .code(1))
        #expect(image.output.contains("no route takes it") && image.output.contains("taken as an empty file"))
        let outside = try await place.inlet("route", "/elsewhere/a.txt")
        #expect(outside.output.contains("not below any watched folder"))
        #expect(try await place.inlet("queue", "list").output.contains("The queue is empty"))
    }

    @Test func `route says which file a sidecar goes with`() async throws {
        var config = ConfigText()
        config.route += ["match: { extensions: [glb] }", "sidecars: { extensions: [png] }"]
        let place = try Place(config)
        try place.put("a/ship.glb", bytes(10))
        try place.put("a/ship.png", bytes(10))
        try place.put("a/boat.png", bytes(10))
        let picture = try await place.inlet("route", place.drop.appending("a").appending("ship.png").string)
        #expect(picture.ending == .code(0) && picture.output.contains("goes with a/ship.glb, by route all"))
        #expect(!picture.output.contains("ignored"), "\(picture.output)")
        let alone = try await place.inlet("route", place.drop.appending("a").appending("boat.png").string)
        #expect(alone.ending == .code(1) && alone.output.contains("it would be ignored"), "\(alone.output)")
    }

    @Test func `route shows what a sidecar changes, and what is wrong with it`() async throws {
        var config = ConfigText()
        config.route = ["key: \"{name}\"", "sidecars: { metadata: true }"]
        let place = try Place(config)
        try place.put("clip.mp4", bytes(10))
        try place.put("clip.mp4.yaml", Data("label: One\n".utf8))
        let clip = place.drop.appending("clip.mp4").string
        let known = try await place.inlet("route", clip)
        #expect(known.ending == .code(0))
        #expect(known.output.contains("the sidecar's field 'label' is none of the destination's"), "\(known.output)")
        try place.put("clip.mp4.yaml", Data("label: [One\n".utf8))
        let broken = try await place.inlet("route", clip)
        #expect(broken.ending == .code(1))
        #expect(broken.output.contains("rejected: clip.mp4.yaml:2:1: this is not valid YAML"), "\(broken.output)")
    }

    @Test func `route says where a date of capture comes from`() async throws {
        var config = ConfigText()
        config.route = ["key: \"{captured:YYYY-'W'ww}/{captured:yyyy-MM-dd}_{name}\""]
        let place = try Place(config)
        try place.put("dated.jpg", Data(DatedPicture.jpeg("2021:01:03 07:08:09")))
        try place.put("plain.jpg", bytes(10))
        let dated = try await place.inlet("route", place.drop.appending("dated.jpg").string)
        #expect(dated.ending == .code(0))
        #expect(dated.output.contains("key      2020-W53/2021-01-03_dated.jpg"), "\(dated.output)")
        #expect(dated.output.contains("captured 2021-01-03T07:08:09.000 (EXIF DateTime)"), "\(dated.output)")
        for name in ["plain.jpg", "not-there.jpg"] {
            let other = try await place.inlet("route", place.drop.appending(name).string)
            #expect(other.ending == .code(0))
            #expect(other.output.contains("note     the file names no date of capture"), "\(other.output)")
            #expect(!other.output.contains("captured 20"), "\(other.output)")
        }
    }

    @Test func `config show fills in defaults and hides secrets`() async throws {
        let place = try Place(.spiral(1))
        let shown = try await place.inlet("config", "show")
        #expect(shown.ending == .code(0))
        #expect(shown.output.contains("***") && !shown.output.contains(ConfigText.apiKey))
        #expect(shown.output.contains("parallel_parts: 4") && shown.output.contains("rescan:"))
        try place.configure(
            text: shown.output.replacing("\"***\"", with: "some-key").replacing("***", with: "some-key"))
        let again = try await place.inlet("config", "show")
        #expect(again.ending == .code(0), "what show prints is a configuration: \(again.errors)")
        #expect(again.output == shown.output)
    }

    @Test func `config schema prints the schema that the repository holds`() async throws {
        let place = try Place()
        let process = try InletProcess(["config", "schema"], in: place.folder.path)
        #expect(try await process.ending() == .code(0))
        let kept = try place.content(Repository.root.appending("config").appending("inlet.schema.json"))
        #expect(process.output == String(decoding: kept, as: UTF8.self))
    }

    @Test func `the demo ends well twice in a row in the same folder`() async throws {
        let folder = try TemporaryDirectory()
        for _ in 1...2 {
            let demo = try InletProcess(
                ["demo", "--once", "--dir", folder.path.appending("demo").string], in: folder.path)
            #expect(try await demo.ending() == .code(0), "\(demo.output) \(demo.errors)")
            #expect(demo.output.contains("stored objects, pictures and models compared byte for byte: all equal"))
            #expect(demo.output.contains("→ stage: gigs/") && demo.output.contains("→ archive: gigs/"))
            #expect(demo.output.contains("→ picture,") && demo.output.contains("→ data of the product"))
            #expect(demo.output.contains("product.json") && demo.output.contains("→ model of space 'atrium'"))
            #expect(demo.output.contains("→ preview of space 'atrium'"))
        }
    }
}
