import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// `inlet report` in its forms.
@Suite(.serialized) struct ReportCommandTests {
    private static let printers = [
        "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "weasyprint",
    ]
    .map { "/usr/bin/" + $0 }

    private static func isThere(_ programs: [String]) -> Bool {
        programs.contains { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// A batch that has ended, and its place; the agent is stopped.
    private static func offloaded() async throws -> Place {
        let place = try ManifestTests.place()
        let agent = try await place.run()
        try ManifestTests.offload(place)
        try await agent.line("batch.ended")
        #expect(try await agent.stop() == .code(0))
        return place
    }

    @Test func `a table has a line for each file and destination, and recordings that do not open come first`()
        async throws
    {
        let place = try await Self.offloaded()
        let table = place.folder.path.appending("offload.csv")
        try await place.inlet("report", "--format", "csv", "--output", table.string, code: 0)
        let lines = String(decoding: try place.content(table), as: UTF8.self).split(separator: "\r\n")
        #expect(lines.count == 4 && lines[0].hasPrefix("batch,card,") && lines.allSatisfy { $0.contains(",") })
        #expect(lines.contains { $0.contains(",raw/<b>.mov,4,") && $0.contains(",store,delivered,") }, "\(lines)")
        // Four bytes of text are no movie.
        let text = try await place.inlet("report", code: 0, says: "CHECK BEFORE YOU FORMAT").output
        let (check, delivered) = (text.firstRange(of: "raw/<b>.mov"), text.firstRange(of: "raw/c  "))
        #expect(check.map { c in delivered.map { c.lowerBound < $0.lowerBound } ?? false } == true, "\(text)")
        #expect(text.contains("! its beginning is not that of a MOV or MP4 file"))
    }

    @Test(.enabled(if: isThere(printers), "needs chromium, google-chrome or weasyprint"))
    func `a browser or WeasyPrint prints a PDF, and nothing of the printing stays`() async throws {
        let place = try await Self.offloaded()
        let file = place.folder.path.appending("offload.pdf")
        let scratch = try place.folder.makeDirectory("tmp")
        try await place.inlet(
            "report", "--format", "pdf", "--output", file.string, environment: ["TMPDIR": scratch.string], code: 0)
        #expect(try place.content(file).starts(with: Data("%PDF".utf8)))
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.string).isEmpty)
    }

    @Test func `without a printer the command says which package to install`() async throws {
        let place = try await Self.offloaded()
        let file = place.folder.path.appending("offload.pdf")
        try await place.inlet(
            "report", "--format", "pdf", "--output", file.string, environment: ["PATH": place.folder.path.string],
            code: 1, errors: "install chromium or weasyprint")
        #expect(!place.exists(file))
    }

    @Test(.enabled(if: isThere(["/usr/bin/ffmpeg"]), "needs ffmpeg"))
    func `with frames, a page shows the first and the last picture of each recording`() async throws {
        let place = try ManifestTests.place()
        let film = place.folder.path.appending("film.mov")
        let maker = try Process.run(
            URL(fileURLWithPath: "/usr/bin/ffmpeg"),
            arguments: [
                "-v", "error", "-f", "lavfi", "-i", "testsrc=d=2:r=25:s=320x240", "-timecode", "01:02:03:04", "-c:v",
                "mpeg4", film.string,
            ])
        maker.waitUntilExit()
        try #require(maker.terminationStatus == 0)
        let agent = try await place.run()
        try place.put("A001/C0001.MOV", try place.content(film))
        try place.put("A001/text.mov", Data("no film".utf8))
        try place.put("A001/DONE", Data())
        try await agent.line("batch.ended")
        let page = place.folder.path.appending("page.html")
        try await place.inlet("report", "--format", "html", "--frames", "--output", page.string, code: 0)
        let written = String(decoding: try place.content(page), as: UTF8.self)
        #expect(written.matches(of: /src="data:image\/jpeg;base64,/).count == 2 && written.contains("img-src data:"))
        #expect(written.contains("2s · TC 01:02:03:04"))
        try await place.inlet(
            "report", "--format", "html", "--frames", environment: ["PATH": place.folder.path.string], code: 1,
            errors: "install ffmpeg")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `options that contradict each other are refused`() async throws {
        let place = try Place()
        for (arguments, reason) in [
            (["12", "--card", "EOS"], "leave out the batch"), (["--since", "yesterday"], "is not a time"),
            (["--format", "pdf"], "--output FILE"), (["--frames"], "--frames needs --format html"),
            (["--frames", "--json", "--format", "html"], "--frames needs"),
        ] {
            try await place.inlet(["report"] + arguments, code: 64, errors: reason)
        }
        try await place.inlet("report", "--card", "NO_SUCH", code: 1, errors: "there is no card 'NO_SUCH'")
        try await place.inlet("report", "--since", "06:00", code: 1, errors: "no file of a card matches")
    }
}

/// Reports on real cards.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardReportCommandTests {
    @Test func `cards are joined by name, by time and by project, with what to check before they are formatted`()
        async throws
    {
        let place = try Place(
            key: "cards/{volume}/{dir}/{name}", watch: ["card_report: [html]"], route: ["labels: { project: spring }"])
        for slot in ["one", "two"] { try place.folder.makeDirectory(FilePath("media/\(slot)")) }
        let media = place.folder.path.appending("media")
        try place.configure(replacing: "path: drop", with: "path: \"\(media)/*/DCIM\"")
        let cards = [try DiskImage(label: "EOS"), try DiskImage(label: "EOS")]
        for (number, card) in cards.enumerated() {
            for name in ["C0001.MP4", "C0003.MP4"] {
                try card.write(bytes(1000 + number, seed: UInt64(number)), to: FilePath("DCIM/100/\(name)"))
            }
        }
        let agent = try await place.run()
        for (card, slot) in zip(cards, ["one", "two"]) {
            try card.mount(at: media.pushing(FilePath(slot)), readOnly: true)
            try await agent.line("volume.done", number: slot == "one" ? 1 : 2)
        }
        let one = try await place.inlet("report", "--card", "EOS", "--json", code: 0).object()
        let files = try #require(one["files"] as? [[String: Any]])
        #expect(files.map { $0["path"] as? String } == ["DCIM/100/C0001.MP4", "DCIM/100/C0003.MP4"])
        #expect(files.allSatisfy { ($0["check"] as? String)?.contains("MOV or MP4") == true }, "\(files)")
        let named = try #require(one["cards"] as? [[String: Any]])
        #expect(named.map { $0["name"] as? String } == ["EOS"])
        #expect(named.first?["missing"] as? [String] == ["DCIM/100/C0002"])
        for criteria in [["--since", "1h"], ["--project", "spring"], ["--card", "EOS", "--card", "EOS (2)"]] {
            let text = try await place.inlet(["report"] + criteria, code: 0).output
            for part in ["CARD  EOS\n", "CARD  EOS (2)\n", "DCIM/100/C0002 is missing", "4 of 4 files"] {
                #expect(text.contains(part), "\(criteria) \(part)\n\(text)")
            }
        }
        try await place.inlet("report", "--project", "autumn", code: 1, errors: "no file of a card matches")
        #expect(try await agent.stop() == .code(0))
        // Without an agent the journal says the same.
        let page = place.folder.path.appending("cards.html")
        try await place.inlet("report", "--since", "1h", "--format", "html", "--output", page.string, code: 0)
        let written = String(decoding: try place.content(page), as: UTF8.self)
        #expect(written.matches(of: /<section class="card">/).count == 2 && written.contains("Check before you format"))
    }
}
