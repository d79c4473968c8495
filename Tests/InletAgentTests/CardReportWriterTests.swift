import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// The warnings about a card before it is formatted.
@Suite struct SuspectTests {
    @Test func `recordings that do not open and missing numbers are named with their paths`() throws {
        let directory = try TemporaryDirectory()
        for (name, content) in [
            ("DCIM/100/C0001.MP4", "text"), ("DCIM/100/C0003.MP4", ""), ("DCIM/100/note.txt", ""),
        ] {
            try directory.write(content.utf8, to: FilePath(name))
        }
        let files: [(path: FilePath, size: Int64)] = [
            ("DCIM/100/C0001.MP4", 4), ("DCIM/100/C0003.MP4", 0), ("DCIM/100/note.txt", 0), ("DCIM/gone/C0001.MP4", 4),
            ("DCIM/100/C0004.JPG", 0),
        ]
        #expect(
            ClipReader.suspects(on: directory.path, files, unless: { false }) == [
                "DCIM/100/C0001.MP4: its beginning is not that of a MOV or MP4 file", "DCIM/100/C0003.MP4: it is empty",
                "DCIM/100/C0004.JPG: it is empty", "DCIM/100/C0002 is missing from its run of numbers",
            ])
        #expect(
            ClipReader.suspects(on: directory.path, files, unless: { true }) == [
                "DCIM/100/C0002 is missing from its run of numbers"
            ])
    }
}

/// The report beside the copies of a card.
@Suite(.enabled(if: CardReader.isAvailable, "needs the right to mount")) struct CardReportWriterTests {
    private let reader: CardReader
    private let library: FilePath
    private let scene: Scene

    init() throws {
        let directory = try TemporaryDirectory()
        reader = try CardReader(directory)
        library = try directory.makeDirectory("library")
        var scene = try reader.scene()
        scene.destinations = [.folder("here", library)]
        scene.destinations[0].folder = library
        self.scene = scene
    }

    /// A card of which everything is in the library, and the writer.
    private func delivered(_ body: (Stage, CardRow, CardReportWriter) async throws -> Void) async throws {
        try reader.makeCard("A", with: "100CANON/C0001.MP4", "100CANON/C0003.MP4")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await stage.finished("100CANON/C0001.MP4")
            try await stage.finished("100CANON/C0003.MP4")
            let card = try #require(try await stage.journal.insertions(limit: 1).first?.card)
            let shared = try #require(stage.agent.control.live).shared
            try await body(
                stage, card, CardReportWriter(shared: shared, pool: BlockingPool(name: "report", threads: 1)))
        }
    }

    @Test func `each form of the report lies at the top of the folder, and an older one stays`() async throws {
        try await delivered { stage, card, writer in
            let (report, files) = try await writer.write(card, [.html, .csv])
            #expect(report.files.map(\.path) == ["DCIM/100CANON/C0001.MP4", "DCIM/100CANON/C0003.MP4"])
            // Neither is a movie inside.
            #expect(
                report.files.allSatisfy { $0.check != nil } && report.cards?.first?.missing == ["DCIM/100CANON/C0002"])
            #expect(files == ["html", "csv"].map { library.appending("\(report.fileName).\($0)") })
            let page = try text(files[0])
            #expect(page.contains("C0002 is missing") && page.contains("Check before you format"))
            #expect(try text(files[1]).hasPrefix("batch,card,"))
            let again = try await writer.write(card, [.html])
            #expect(again.files == [library.appending("\(report.fileName)_2.html")])
            #expect(try text(files[0]) == page)
            #expect(stage.events.count("report.written") == 3)
            // Nothing of it is ever written to the card.
            let card = reader.media.appending("one")
            #expect(try FileManager.default.contentsOfDirectory(atPath: card.string) == ["DCIM"])
        }
    }

    @Test func `a folder that is gone is said, and gets no new one`() async throws {
        try await delivered { stage, card, writer in
            try FileManager.default.removeItem(atPath: library.string)
            #expect(try await writer.write(card, [.json]).files.isEmpty)
            #expect(stage.events.count("report.failed") == 1 && !isThere(library))
        }
    }
}
