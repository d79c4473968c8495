import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// `inlet run --dry-run`: what would be done, and no trace of having asked.
@Suite struct DryRunTests {
    private static let text = """
        state_dir: state
        destinations:
          store: { type: folder, path: library }
        watch:
          - { path: drop, settle: 0s }
        routes:
          - name: pictures
            match: { extensions: [jpg] }
            validate: { max_size: 1KiB }
            key: "{category}/{sha256:8}_{name}"
            to: store
            on_success: archive
          - name: texts
            match: { extensions: [txt] }
            sidecars: { extensions: [srt] }
            key: "{dir}/{name}"
            to: store

        """

    private func place() throws -> Place {
        let place = try Place()
        try place.configure(text: Self.text)
        try place.put("a/one.txt", bytes(100))
        try place.put("a/one.srt", bytes(10))
        try place.put("two.jpg", bytes(200))
        try place.put("large.jpg", bytes(2000))
        try place.put("other.bin", bytes(10))
        try place.put("half.part", bytes(10))
        try FileManager.default.createSymbolicLink(
            atPath: place.drop.appending("link").string, withDestinationPath: "two.jpg")
        return place
    }

    private func names(_ folder: FilePath) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.string).sorted()
    }

    /// Waits until the agent knows all that is there.
    private func settled(_ agent: InletProcess) async throws {
        for name in ["a/one.txt", "two.jpg"] {
            try await agent.line("job.finished") { ($0["path"] ?? "").hasSuffix(name) }
        }
        try await agent.line("file.rejected")
    }

    @Test
    func `each file is told its route, its key and what becomes of it, programs get a line for it, all is untouched`()
        async throws
    {
        let place = try place()
        let before = try names(place.drop)
        let run = try await place.inlet(
            "run", "--dry-run", code: 0, says: "route texts to store (not pictures: extension 'txt' is not one of jpg)",
            "key a/one.txt, then keep", "rejected by pictures: 2 KiB is over the limit of 1 KiB",
            "goes with \(place.drop.string)/a/one.txt", "2 files would be sent, 300 bytes",
            "1 file ignored: no route takes it", "1 file ignored: a symlink", "1 file ignored: its name")
        #expect(run.output.contains(/key images\/[0-9a-f]{8}_two\.jpg, then archive/))
        let lines = try await place.inlet("run", "--dry-run", "--json", code: 0).objects()
        let verdicts = lines.reduce(into: [String: String]()) { found, object in
            let name = FilePath(object["path"] as? String ?? "").lastComponent?.string ?? ""
            found[name] = object["verdict"] as? String
        }
        #expect(
            verdicts == [
                "one.txt": "planned", "one.srt": "along", "two.jpg": "planned", "large.jpg": "rejected",
                "other.bin": "unmatched", "link": "irregular",
            ])
        try await place.inlet("run", "--json", code: 64)
        #expect(try names(place.drop) == before)
        #expect(!place.exists(place.state))
        #expect(try names(place.library).isEmpty)
    }

    @Test(arguments: [true, false])
    func `what the journal knows is said to be known, beside an agent and after it, also where it was killed`(
        _ isKilled: Bool
    ) async throws {
        let place = try place()
        try place.configure(text: Self.text.replacing("on_success: archive", with: "on_success: keep"))
        let agent = try await place.run()
        try await settled(agent)
        try await place.inlet("run", "--dry-run", code: 0, says: "0 files would be sent", "known already")
        if isKilled {
            try await agent.kill()
            try await place.inlet("run", "--dry-run", code: 0, says: "0 files would be sent")
            return
        }
        #expect(try await agent.stop() == .code(0))
        let before = try names(place.state)
        try await place.inlet("run", "--dry-run", code: 0, says: "0 files would be sent")
        #expect(try names(place.state) == before)
        try place.put("new.txt", bytes(5))
        try await place.inlet("run", "--dry-run", says: "1 file would be sent, 5 bytes")
    }

    @Test func `a wrong configuration and a journal that is none are 78`() async throws {
        let place = try place()
        try FileManager.default.createDirectory(atPath: place.state.string, withIntermediateDirectories: true)
        try Data(repeating: 0x41, count: 9000).write(
            to: URL(fileURLWithPath: place.state.appending("journal.sqlite").string))
        try await place.inlet("run", "--dry-run", code: 78)
        #expect(try names(place.state) == ["journal.sqlite"])
        try place.configure(text: "routes: [\n")
        try await place.inlet("run", "--dry-run", code: 78)
    }

    @Test func `a journal that cannot be read is 78, named, and left as it is`() async throws {
        let place = try place()
        // Not even root can read it.
        try place.folder.makeDirectory("state/journal.sqlite")
        let run = try await place.inlet("run", "--dry-run", code: 78, errors: "\(place.state)/journal.sqlite: ")
        #expect(run.output.isEmpty, "\(run.errors)")
        #expect(try names(place.state) == ["journal.sqlite"])
    }

    @Test func `a folder that is not there is named, and is no error`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        try await place.inlet("run", "--dry-run", code: 0, errors: "not there yet")
    }
}

/// `inlet route` on what no route is asked about.
@Suite struct RouteIgnoredTests {
    @Test(arguments: [
        (".DS_Store", "'.DS_Store' is on the built-in ignore list: .DS_Store"),
        ("@eaDir/a.jpg", "'@eaDir' is on the built-in ignore list: @eaDir"),
        ("raw/a.bak", "it matches '*.bak' in the folder's 'ignore'"),
    ])
    func `an ignored file is said to be that, by what, and no route takes it`(name: String, reason: String) async throws
    {
        let place = try Place(watch: ["ignore: [\"*.bak\"]"])
        try place.put(FilePath(name), bytes(10))
        let said = try await place.inlet("route", place.drop.pushing(FilePath(name)).string, code: 1)
        #expect(said.output == "\(place.drop)/\(name)\n  ignored: \(reason)\n", "\(said.output)")
    }
}

/// `inlet route --json` and `inlet config show --json`.
@Suite struct SettingsJSONTests {
    @Test func `route prints one object for each file, and exits with 1 if no route takes one`() async throws {
        let place = try Place(key: "videos/{name}", route: ["match: { extensions: [mp4] }"])
        try place.put("a.mp4", bytes(10))
        try place.put("b.txt", bytes(10))
        let (taken, left) = (place.drop.appending("a.mp4").string, place.drop.appending("b.txt").string)
        let files = try await place.inlet("route", "--json", taken, left, code: 1).objects()
        #expect(files.map { $0["path"] as? String } == [taken, left])
        #expect(files.map { $0["matched"] as? Bool } == [true, false])
        #expect(files.map { $0["route"] as? String } == ["all", nil])
        let deliveries = files.map { $0["deliveries"] as? [[String: String]] }
        #expect(deliveries == [[["destination": "store", "key": "videos/a.mp4"]], []], "\(files)")
        #expect((files.last?["why"] as? [String])?.contains { $0.contains("Inlet would ignore it") } == true)
    }

    @Test func `config show prints every default as JSON, and no secret`() async throws {
        let secret = "sk-\(UUID().uuidString)"
        let place = try Place(destination: "type: r2, api: \"https://r2.invalid\", dialect: v1, api_key: \"\(secret)\"")
        let shown = try await place.inlet("config", "show", "--json", code: 0)
        let config = try shown.object()
        let store = (config["destinations"] as? [String: [String: Any]])?["store"]
        #expect(store?["type"] as? String == "r2" && store?["api_key"] as? String == "***", "\(shown.output)")
        #expect((config["watch"] as? [[String: Any]])?.first?["existing"] as? String == "ingest")
        #expect(!shown.output.contains(secret) && !shown.errors.contains(secret))
    }
}

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
