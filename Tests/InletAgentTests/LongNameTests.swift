import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Names of 255 bytes, which leave no room for what others have added to theirs.
@Suite struct LongNameTests {
    private static let ascii = Array((String(repeating: "n", count: 251) + ".mov").utf8)
    private static let letters = Array((String(repeating: "é", count: 124) + "日.mov").utf8)
    private static let noText = [UInt8](repeating: 0xFF, count: 251) + Array(".mov".utf8)
    static let all = [ascii, letters, noText]
    /// Others that are the same in all bytes that a shortened name keeps.
    private static func twin(of name: [UInt8]) -> [UInt8] {
        var twin = name
        if name == letters { twin.replaceSubrange(248..<251, with: "本".utf8) }
        if name != letters { twin.replaceSubrange(249..<251, with: "zz".utf8) }
        return twin
    }

    private func put(_ name: [UInt8], _ content: String, in stage: Stage) throws {
        try DurableFile.write(Array(content.utf8), to: stage.root.pushing(FilePath(bytes: name)), mode: 0o644)
    }

    private func finished(_ count: Int, _ stage: Stage) async throws {
        try await eventually("\(count) files are finished") {
            try await stage.journal.receipts(limit: 99).count == count
        }
    }

    private func entries(_ folder: FilePath) throws -> [FilePath.Component] {
        var stream = try Folder(folder).list()
        var names: [FilePath.Component] = []
        while let entry = try stream.next() { names.append(entry.name) }
        return names
    }

    @Test(arguments: all) func `files are archived, again and again, and none over another`(_ name: [UInt8])
        async throws
    {
        var scene = try Scene()
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            let names = [name, Self.twin(of: name), name, Self.twin(of: name), name]
            for (number, name) in names.enumerated() {
                try put(name, "content \(number)", in: stage)
                try await finished(number + 1, stage)
            }
            let archive = stage.root.pushing(".inlet/done")
            let found = try entries(archive)
            #expect(try Set(found.map { try text(archive.appending($0)) }) == Set((0..<5).map { "content \($0)" }))
            #expect(found.allSatisfy { $0.bytes.count <= 255 && $0.bytes.suffix(4).elementsEqual(".mov".utf8) })
            #expect(try text(archive.pushing(FilePath(bytes: name))) == "content 0")
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            #expect(scene.here.record.stored.count == 5)
        }
    }

    @Test(arguments: all) func `files are quarantined, each with a reason of its own`(_ name: [UInt8]) async throws {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.always(.fail(.hopeless))
        try await scene.run { stage in
            for (number, name) in [name, Self.twin(of: name), name].enumerated() {
                try put(name, "content \(number)", in: stage)
                try await finished(number + 1, stage)
            }
            let place = stage.root.pushing(".inlet/failed")
            let found = try entries(place)
            let reasons = found.filter { $0.bytes.suffix(5).elementsEqual(".json".utf8) }
            #expect(found.count == 6 && reasons.count == 3)
            let told = try reasons.map { try text(place.appending($0)) }
            for file in found where !reasons.contains(file) {
                let disposition = "\"quarantined: \(place.appending(file).display)\"".replacing("\\", with: "\\\\")
                #expect(told.count { $0.contains(disposition) } == 1, "\(file)")
            }
        }
    }

    @Test
    func `a file that has the name of a reason stays, and a reason is replaced by the next one for the same name`()
        async throws
    {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.always(.fail(.hopeless))
        try scene.drop(".inlet/failed/a.bin.reason.json", "theirs")
        try await scene.run { stage in
            let place = stage.root.pushing(".inlet/failed")
            for round in 1...2 {
                try scene.drop("a.bin", "content \(round)")
                try await finished(round, stage)
                #expect(try names(in: place) == ["a.bin", "a.bin.reason.json", "a.bin.reason_2.json"])
                try remove(place.appending("a.bin"))
            }
            #expect(try text(place.appending("a.bin.reason.json")) == "theirs")
            let newest = try #require(try await stage.jobs().map(\.file.id).max())
            #expect(try text(place.appending("a.bin.reason_2.json")).hasPrefix("{\"job\":\(newest),"))
        }
    }

    @Test(arguments: all) func `files are delivered to a folder`(_ name: [UInt8]) async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [Self.folder(library)]
        // What is no text takes three bytes for each one in a key, and a number.
        scene.route.key = try KeyTemplate(name == Self.noText ? "{sha256:16}.{ext}" : "{name}")
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            for number in 1...2 {
                try put(name, "content \(number)", in: stage)
                try await finished(number, stage)
            }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            let found = try entries(library)
            #expect(try Set(found.map { try text(library.appending($0)) }) == ["content 1", "content 2"])
        }
    }

    @Test(arguments: all) func `files whose sidecars, markers and receipts have no room beside them go on`(
        _ name: [UInt8]
    ) async throws {
        var scene = try Scene()
        scene.route.sidecars = SidecarRule(metadata: true, extensions: ["xmp"], wait: .zero)
        scene.route.receipts = .sidecar
        try await scene.run { stage in
            try put(name, "content", in: stage)
            try await finished(1, stage)
            #expect(try await stage.jobs().map(\.file.state) == [.delivered])
            try await eventually("it is said") { stage.events.count("receipt.elsewhere") == 1 }
            let receipts = scene.directory.path.pushing("state/receipts")
            #expect(try entries(receipts).count == 1)
        }
    }

    @Test func `a template that makes a longer name fails the file once, and the reason says so`() async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [Self.folder(library)]
        scene.route.key = try KeyTemplate("{epoch_ms}_{name}")
        scene.route.onFailure = .quarantine
        try await scene.run { stage in
            try put(Self.ascii, "content", in: stage)
            try await finished(1, stage)
            let job = try #require(try await stage.jobs().first)
            #expect(job.file.state == .failed)
            #expect(job.deliveries.first?.code == .nameTooLong && job.deliveries.first?.attempts == 1)
            #expect(try entries(library).isEmpty)
            #expect(try entries(stage.root.pushing(".inlet/failed")).count == 2)
        }
    }

    private static func folder(_ path: FilePath) -> Destination {
        let values = ConfigSection(
            values: ["path": .string(path.string)], positions: [:], position: SourcePosition(line: 0, column: 0))
        let pool = BlockingPool(name: "folder", threads: 1)
        return Destination(
            name: "here", type: "folder", pipeline: FolderPipeline(settings: FolderSettings(values), pool: pool),
            smallLimit: 1 << 20, connections: 8, maxInFlight: nil)
    }
}
