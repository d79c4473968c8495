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

    @Test func `each file is told its route, its key and what becomes of it, and nothing is touched`() async throws {
        let place = try place()
        let before = try names(place.drop)
        let run = try await place.inlet("run", "--dry-run")
        #expect(run.ending == .code(0), "\(run.errors)")
        #expect(run.output.contains("route texts to store (not pictures: extension 'txt' is not one of jpg)"))
        #expect(run.output.contains("key a/one.txt, then keep"))
        #expect(run.output.contains(/key images\/[0-9a-f]{8}_two\.jpg, then archive/))
        #expect(run.output.contains("rejected by pictures: 2 KiB is over the limit of 1 KiB"))
        #expect(run.output.contains("goes with \(place.drop.string)/a/one.txt"))
        #expect(run.output.contains("2 files would be sent, 300 bytes"))
        #expect(run.output.contains("1 file ignored: no route takes it"))
        #expect(run.output.contains("1 file ignored: a symlink"))
        #expect(run.output.contains("1 file ignored: its name"))
        #expect(try names(place.drop) == before)
        #expect(!place.exists(place.state))
        #expect(try names(place.library).isEmpty)
    }

    @Test func `programs get a line for every file`() async throws {
        let place = try place()
        let run = try await place.inlet("run", "--dry-run", "--json")
        #expect(run.ending == .code(0), "\(run.errors)")
        let verdicts = try run.objects().reduce(into: [String: String]()) { found, object in
            let name = FilePath(object["path"] as? String ?? "").lastComponent?.string ?? ""
            found[name] = object["verdict"] as? String
        }
        #expect(
            verdicts == [
                "one.txt": "planned", "one.srt": "along", "two.jpg": "planned", "large.jpg": "rejected",
                "other.bin": "unmatched", "link": "irregular",
            ])
        #expect(try await place.inlet("run", "--json").ending == .code(64))
    }

    @Test func `what the journal knows is said to be known, beside an agent and after it`() async throws {
        let place = try place()
        try place.configure(text: Self.text.replacing("on_success: archive", with: "on_success: keep"))
        let agent = try await place.run()
        try await settled(agent)
        let beside = try await place.inlet("run", "--dry-run")
        #expect(beside.ending == .code(0), "\(beside.errors)")
        #expect(beside.output.contains("0 files would be sent"), "\(beside.output)")
        #expect(beside.output.contains("known already"))
        #expect(try await agent.stop() == .code(0))
        let before = try names(place.state)
        let after = try await place.inlet("run", "--dry-run")
        #expect(after.output.contains("0 files would be sent"), "\(after.output)")
        #expect(try names(place.state) == before)
        try place.put("new.txt", bytes(5))
        #expect(try await place.inlet("run", "--dry-run").output.contains("1 file would be sent, 5 bytes"))
    }

    @Test func `a killed agent's journal is read as far as it came`() async throws {
        let place = try place()
        try place.configure(text: Self.text.replacing("on_success: archive", with: "on_success: keep"))
        let agent = try await place.run()
        try await settled(agent)
        try await agent.kill()
        let after = try await place.inlet("run", "--dry-run")
        #expect(after.ending == .code(0), "\(after.errors)")
        #expect(after.output.contains("0 files would be sent"), "\(after.output)")
    }

    @Test func `a wrong configuration and a journal that is none are 78`() async throws {
        let place = try place()
        try FileManager.default.createDirectory(atPath: place.state.string, withIntermediateDirectories: true)
        try Data(repeating: 0x41, count: 9000).write(
            to: URL(fileURLWithPath: place.state.appending("journal.sqlite").string))
        let broken = try await place.inlet("run", "--dry-run")
        #expect(broken.ending == .code(78))
        #expect(try names(place.state) == ["journal.sqlite"])
        try place.configure(text: "routes: [\n")
        #expect(try await place.inlet("run", "--dry-run").ending == .code(78))
    }

    @Test func `a journal that cannot be read is 78, named, and left as it is`() async throws {
        let place = try place()
        // Not even root can read it.
        try place.folder.makeDirectory("state/journal.sqlite")
        let run = try await place.inlet("run", "--dry-run")
        #expect(run.ending == .code(78), "\(run.output)")
        #expect(run.errors.contains("\(place.state)/journal.sqlite: ") && run.output.isEmpty, "\(run.errors)")
        #expect(try names(place.state) == ["journal.sqlite"])
    }

    @Test func `a folder that is not there is named, and is no error`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        let run = try await place.inlet("run", "--dry-run")
        #expect(run.ending == .code(0))
        #expect(run.errors.contains("not there yet"))
    }
}
