import Foundation
import InletCore
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
            try await place.inlet(
                "send", file.string, code: 0, says: "✓ elsewhere/film.mov → store: ", " · delivered now\n")
            let object = try #require(sandbox.objects().first)
            #expect(try place.content(object.path) == bytes(6 << 20))
            #expect(place.exists(file))
            if let agent { try await agent.line("job.finished") }
            #expect((agent?.lines("job.finished").count ?? 1) == 1)
            let again = try await place.inlet(
                "send", file.string, code: 0, says: "= elsewhere/film.mov: already at store as film.mov since 20")
            #expect(again.output.hasSuffix(" (--again sends)\n") && !again.output.contains("→"))
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(sandbox.traffic.counts[.create] == 1)
            try await place.inlet("send", "--again", file.string, code: 0, says: "film.mov →")
            #expect(sandbox.objects().map(\.versions) == [2])
            // What one way of sending knows the other one does.
            try await agent?.stop()
            let other = running ? nil : try await place.run()
            try await place.inlet("send", file.string, says: "already at store as film.mov since")
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

    @Test(arguments: [true, false])
    func `a destination that has moved gets the file once more, and its first place keeps its copy`(
        _ running: Bool
    ) async throws {
        let place = try Place()
        try place.folder.makeDirectory("other")
        let file = try place.folder.write(bytes(1000), to: "a.txt")
        func send() async throws -> Place.Finished {
            let agent = running ? try await place.run() : nil
            let said = try await place.inlet("send", file.string, code: 0)
            try await agent?.stop()
            return said
        }
        #expect(try await send().output.contains(/✓ a\.txt → store: .* · delivered now/))
        // The name stays; the address is another.
        try place.configure(replacing: "path: library", with: "path: other")
        #expect(try await send().output.contains(/✓ a\.txt → store: .* · delivered now/))
        for folder in ["library", "other"] {
            #expect(Array(Place.files(below: place.folder.path.appending(folder)).values) == [bytes(1000)], "\(folder)")
        }
        #expect(try await send().output.hasPrefix("= a.txt: already at store as a.txt since "))
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
            "route", place.drop.appending("a").appending("boat.png").string, code: 1, says: "Inlet would ignore it")
    }

    @Test func `route shows what a sidecar changes, and what is wrong with it`() async throws {
        let place = try Place(key: "{name}", route: ["sidecars: { metadata: true }"])
        try place.put("clip.mp4", bytes(10))
        try place.put("clip.mp4.yaml", Data("label: One\n".utf8))
        let clip = place.drop.appending("clip.mp4").string
        try await place.inlet("route", clip, code: 0, says: "ignored the sidecar's field 'label'")
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
                "route", place.drop.appending(name).string, code: 0, says: "note     the file has no capture date")
            #expect(!other.output.contains("captured 20"), "\(other.output)")
        }
    }

    @Test func `config show fills in defaults and hides secrets`() async throws {
        let place = try Place(.spiral(1))
        let shown = try await place.inlet("config", "show", code: 0, says: "***", "parallel_parts: 8", "rescan:")
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

/// What `inlet send` does with many names, and what becomes of it when somebody stops it or its agent.
@Suite(.serialized) struct SendManyTests {
    /// More than are handed in at once, with options between them, one of them twice, one that is not there, and one whose
    /// name is no text.
    @Test(arguments: [true, false])
    func `of many files all arrive under their names, wherever options stand, and are told in their order`(
        _ running: Bool
    ) async throws {
        try await withSpiral { place, sandbox in
            let agent = running ? try await place.run() : nil
            let names = (1000..<1530).map { "film-\($0).mov" }
            for name in names + ["--dry.mov"] { try place.folder.write(Data(name.utf8), to: FilePath(name)) }
            let odd = Array("odd-".utf8) + [0xFF] + Array(".mov".utf8)
            try Tool.write(Data("odd".utf8), to: Array(place.folder.path.string.utf8) + [UInt8(ascii: "/")] + odd)
            // The shell writes a byte that Foundation's arguments cannot hold.
            let command = ["send", "absent.mov"] + names.prefix(30) + ["--to", "store"] + names.dropFirst(29)
            let process = try InletProcess(
                command + ["--config=\(place.configuration)"], in: place.folder.path,
                launcher: ["/bin/sh", "-c", "exec \"$0\" \"$@\" \"$(printf 'odd-\\377.mov')\" -- --dry.mov"])
            let told = { process.output.split(separator: "\n").filter { $0.contains("→") } }
            for share in 1...4 {
                try await process.wait("quarter \(share) is told of") { told().count >= names.count * share / 4 }
            }
            #expect(try await process.ending() == .code(1), "\(process.errors)")
            #expect(process.errors.contains("absent.mov: not a regular file, or not there"), "\(process.errors)")
            #expect(told().count == names.count + 2)
            #expect(zip(told(), names).allSatisfy { $0.contains($1) } && told().last?.contains("--dry.mov") == true)
            let stored = try sandbox.objects().map { try place.content($0.path) }
            #expect(Set(stored) == Set((names + ["--dry.mov", "odd"]).map { Data($0.utf8) }))
            #expect(stored.count == names.count + 2)
            withExtendedLifetime(agent) {}
        }
    }

    /// A place whose files take some seconds.
    private func withSlowSpiral(_ body: @Sendable @escaping (Place, SpiralSandbox) async throws -> Void) async throws {
        let place = try Place()
        try await withSandbox(place.folder.path.appending("store")) { sandbox, port in
            var config = ConfigText.spiral(port)
            config.top.append("limits: { bandwidth: 2MiB/s }")
            try place.configure(config)
            try await body(place, sandbox)
        }
    }

    @Test func `a send goes on with an agent that is killed and started again`() async throws {
        try await withSlowSpiral { place, sandbox in
            let file = try place.folder.write(bytes(6 << 20), to: "film.mov")
            sandbox.faults.add(Fault(.stall, at: .part, times: nil))
            let first = try await place.run()
            let sending = try place.start("send", file.string)
            try await first.line("job.started")
            try await first.kill()
            sandbox.faults.clear()
            let second = try await place.run()
            #expect(try await sending.ending() == .code(0), "\(sending.errors)")
            // The line comes after the journal has it, which the command reads.
            try await second.line("job.finished")
            #expect(sending.output.contains("film.mov →") && second.lines("job.finished").count == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == bytes(6 << 20))
        }
    }

    @Test func `what the agent has taken is sent when the command is stopped`() async throws {
        try await withSlowSpiral { place, sandbox in
            let files = try (0..<3).map { number in
                try place.folder.write(bytes(2 << 20, seed: UInt64(number)), to: FilePath("film-\(number).mov"))
            }
            let gate = RequestGate()
            sandbox.faults.add(Fault(.hold(gate), at: .single, times: nil))
            let agent = try await place.run()
            let sending = try place.start("send", files[0].string, files[1].string, files[2].string)
            try await agent.line("job.admitted", number: files.count)
            sending.signal(SIGINT)
            gate.open()
            #expect(try await sending.ending() == .signal(SIGINT))
            try await agent.line("job.finished", number: files.count)
            #expect(sandbox.objects().count == files.count)
        }
    }

    @Test func `without an agent a send that is stopped says so, and goes on when it is repeated`() async throws {
        try await withSlowSpiral { place, sandbox in
            let file = try place.folder.write(bytes(6 << 20), to: "film.mov")
            let gate = RequestGate()
            sandbox.faults.add(Fault(.hold(gate), at: .part, times: nil))
            let stopped = try place.start("send", file.string)
            try await stopped.wait("it has begun") { sandbox.traffic.counts[.create] == 1 }
            stopped.signal(SIGINT)
            gate.open()
            #expect(try await stopped.ending() == .code(130), "\(stopped.errors)")
            #expect(stopped.errors.contains("repeat the command to continue") && !stopped.output.contains("→"))
            try await place.inlet("send", file.string, code: 0)
            #expect(try place.content(#require(sandbox.objects().first).path) == bytes(6 << 20))
        }
    }

    @Test func `a file that vanishes after it was handed in is told of as gone, and the others arrive`() async throws {
        try await withSlowSpiral { place, sandbox in
            let files = try (0..<3).map { number in
                try place.folder.write(bytes(2 << 20, seed: UInt64(number)), to: FilePath("film-\(number).mov"))
            }
            let agent = try await place.run()
            try await place.inlet("limit", "0", code: 0)
            try await place.inlet(["send"] + files.map(\.string), code: 69)
            try FileManager.default.removeItem(atPath: files[1].string)
            try await place.inlet("limit", "auto", code: 0)
            try await agent.wait("all have ended") {
                let balance = try await place.balance()
                return balance["delivered"] == 2 && balance["gone"] == 1
            }
            try await place.inlet("send", files[0].string, files[2].string, code: 0)
            #expect(sandbox.objects().count == 2)
        }
    }
}

/// `inlet sandbox`, which scripts measure the agent against.
@Suite struct SandboxTests {
    /// What `GET /` at this address answers.
    private static func report(_ address: String, _ folder: FilePath) async throws -> [String: Any] {
        let target = folder.appending("report.json")
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
        curl.arguments = ["-sf", "--noproxy", "*", "-o", target.string, address + "/"]
        try curl.run()
        try await eventually("the report") { !curl.isRunning }
        try #require(curl.terminationStatus == 0)
        let data = try Data(contentsOf: URL(fileURLWithPath: target.string))
        return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
    func `the sandbox runs by itself, says where, takes a delivery, and reports it`() async throws {
        let place = try Place()
        let ready = place.folder.path.appending("ready.json")
        let servers = try InletProcess(
            ["sandbox", "--dir", place.folder.path.appending("servers").string, "--ready-file", ready.string],
            in: place.folder.path)
        try await servers.wait("the servers") { place.exists(ready) }
        let said = try #require(try JSONSerialization.jsonObject(with: place.content(ready)) as? [String: String])
        #expect(Set(said.keys).isSuperset(of: ["spiral", "s3", "gighive", "vopi", "roboscope", "control", "api_key"]))
        try await servers.wait("the same line on its output") { servers.output.contains(said["control"] ?? "?") }
        var config = ConfigText()
        config.destination =
            "type: r2, api: \"\(said["spiral"] ?? "")\", dialect: v1, api_key: \(said["api_key"] ?? "")"
        try place.configure(config)
        try place.put("clip.mov", bytes(20_000))
        try await place.runUntil("job.finished") { $0["state"] == "delivered" }
        let spiral = try #require(
            try await Self.report(said["control"] ?? "", place.folder.path)["spiral"] as? [String: Any])
        let objects = try #require(spiral["objects"] as? [[String: Any]])
        #expect(objects.compactMap { $0["key"] as? String } == ["clip.mov"])
        #expect(objects.first?["versions"] as? Int == 1 && objects.first?["size"] as? Int == 20_000)
        let path = FilePath(objects.first?["path"] as? String ?? "")
        #expect(try place.content(path) == bytes(20_000))
        let server = try #require(spiral["server"] as? [String: Any])
        #expect((server["bytes"] as? [String: Int])?["single"] == 20_000)
        #expect((server["requests"] as? [String: Int])?["single"] == 1 && server["faults"] as? Int == 0)
        #expect(spiral["open_uploads"] as? [String] == [])
        #expect(try await servers.stop() == .code(0))
    }

    @Test func `the sandbox is for scripts, and not among the commands that help lists`() async throws {
        let folder = try TemporaryDirectory()
        let help = try await InletProcess.run(["--help"], in: folder.path, code: 0, says: "  demo ")
        #expect(!help.output.contains("  sandbox "))
        try await InletProcess.run(["sandbox", "--dir", "x", "--trouble", "2"], in: folder.path, code: 64)
    }
}
