import Foundation
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The process dies where it hurts most; after a restart nothing is lost and nothing was done twice.
@Suite(.serialized) struct CrashTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let point: Failpoint
        let disposition: String
        let size: Int

        var testDescription: String { "\(point.rawValue), on_success: \(disposition), \(size) bytes" }

        /// Whether the journal knows the end already. What stays where it is has no step between its proof and its end.
        var isFinished: Bool { point == .finished || point == .delivered && disposition == "keep" }

        static let small = 20_000
        static let large = 11 << 20

        /// Every failpoint that such a delivery passes, but for the one where an upload's id is lost: the store ends that.
        static let all: [Case] = Failpoint.allCases.filter { $0 != .noting }.flatMap { point in
            ["keep", "archive", "delete"].flatMap { disposition in
                [small, large].map { Case(point: point, disposition: disposition, size: $0) }
            }
        }.filter { one in
            let isPartOfUpload = [.uploadCreated, .partUploaded, .beforeComplete].contains(one.point)
            let isPartOfMove = [.intentWritten, .renamedAway, .disposed].contains(one.point)
            return !(isPartOfUpload && one.size == small) && !(isPartOfMove && one.disposition == "keep")
        }
    }

    @Test(arguments: Case.all)
    func `a crash at any point leaves one object, one receipt, and the source as its route asks`(_ one: Case)
        async throws
    {
        try await withSpiral(route: "on_success: \(one.disposition)") { place, sandbox in
            let content = bytes(one.size)
            try place.put("camera/clip.mov", content)
            let agent = try place.start("run", environment: ["INLET_FAILPOINT": one.point.rawValue])
            #expect(try await agent.ending() == .signal(SIGKILL))
            let next = try await place.run()
            if !one.isFinished { try await next.line("job.finished") }
            #expect(try await next.stop() == .code(0))
            try await Aftermath(place, sandbox).check("camera/clip.mov", content, one.disposition)
        }
    }

    @Test(arguments: [Failpoint.intentWritten, .renamedAway, .disposed])
    func `after a crash the receipt still names the archived file, beside an older one of that name`(
        _ point: Failpoint
    ) async throws {
        var config = ConfigText()
        config.route.append("on_success: archive")
        let place = try Place(config)
        try place.folder.write(bytes(5), to: "drop/.inlet/done/clip.mov")
        try place.put("clip.mov", bytes(10))
        let agent = try place.start("run", environment: ["INLET_FAILPOINT": point.rawValue])
        #expect(try await agent.ending() == .signal(SIGKILL))
        let next = try await place.run()
        try await next.line("job.finished")
        #expect(try await next.stop() == .code(0))
        let archive = place.drop.appending(".inlet").appending("done")
        #expect(try place.content(archive.appending("clip.mov")) == bytes(5))
        #expect(try place.content(archive.appending("clip_2.mov")) == bytes(10))
        let receipt = try #require(try await place.inlet("receipts").objects().first)
        #expect(receipt["disposition"] as? String == "archived: \(archive.appending("clip_2.mov").string)")
    }
}

/// What must hold once everything has ended, however often the process died.
struct Aftermath {
    let place: Place
    let sandbox: SpiralSandbox

    init(_ place: Place, _ sandbox: SpiralSandbox) {
        self.place = place
        self.sandbox = sandbox
    }

    func check(_ name: FilePath, _ content: Data, _ disposition: String) async throws {
        #expect(sandbox.objects().map(\.key) == [name.string])
        #expect(sandbox.openUploads().isEmpty)
        #expect(try place.content(#require(sandbox.objects().first).path) == content)
        try checkSource(name, content, disposition)
        let receipts = try await place.inlet("receipts").objects()
        #expect(receipts.count == 1)
        let words = ["keep": "kept", "archive": "archived", "delete": "deleted"]
        #expect(
            (receipts.first?["disposition"] as? String)?.hasPrefix(words[disposition] ?? "?") ?? false, "\(receipts)")
        #expect(receipts.first?["state"] as? String == "delivered")
    }

    /// The source is where its route wants it, and nowhere else.
    func checkSource(_ name: FilePath, _ content: Data, _ disposition: String) throws {
        let source = place.drop.pushing(name)
        let archived = place.drop.appending(".inlet").appending("done").pushing(name)
        #expect(place.exists(source) == (disposition == "keep"))
        #expect(place.exists(archived) == (disposition == "archive"))
        switch disposition {
        case "keep": #expect(try place.content(source) == content)
        case "archive": #expect(try place.content(archived) == content)
        default: break
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: source.removingLastComponent().string)
        #expect(!names.contains { $0.hasPrefix(".inlet-") }, "\(names)")
    }
}
