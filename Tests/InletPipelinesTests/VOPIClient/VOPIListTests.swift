import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Lists that are longer than one answer, and longer than they should be.
@Suite struct VOPIListTests {
    private static let publicURL = "https://store.example/uploads/1.mp4"

    /// Sixty-five jobs of which one is ours, thirty to a page whatever was asked for.
    private static func page(_ target: String) -> String {
        let offset = target.firstMatch(of: /offset=(\d+)/).flatMap { Int($0.1) } ?? 0
        let jobs = (offset..<min(offset + 30, 65)).map { number in
            let video = number == 60 ? publicURL : "https://store.example/uploads/other\(number).mp4"
            return #"{"id":"job-\#(number)","status":"pending","videoUrl":"\#(video)"}"#
        }
        return #"{"jobs":[\#(jobs.joined(separator: ","))],"total":65}"#
    }

    @Test func `a job is found behind pages that are shorter than was asked for`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            asked.path == "/api/v1/jobs" ? .json(200, Self.page(asked.target)) : .json(200, #"{"status":"pending"}"#)
        }
        try await place.keep()
        let now = WallTime.now
        var record = VOPIRecord()
        record.upload = VOPIRecord.Upload(
            url: "", publicURL: Self.publicURL, expires: now.milliseconds, contentType: "video/mp4")
        record.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: false)
        record.creating = VOPIRecord.Creating(sentAt: now.milliseconds, lookAt: 0)
        let notes = Notes(record.entries)
        let path = try place.folder.write("video".utf8, to: "clip.mp4")
        let source = try SourceFile(opening: path)
        let order = DeliveryOrder(
            id: 1, destination: "here", key: "clip.mp4", mediaType: "video/mp4", fields: [:], source: source.opened)
        let pool = BlockingPool(name: "list", threads: 2)
        let pipeline = VOPIPipeline(api: try place.api(), client: place.client, pool: pool)
        guard case .waiting = try await pipeline.deliver(source, order, notes.attempt()) else {
            Issue.record("does not wait for the job")
            return
        }
        #expect(VOPIRecord(notes.entries).job?.id == "job-60")
        #expect(!place.server.asked.contains { $0.method == "POST" })
    }

    @Test func `a server that speaks of files without end gets none of them fetched`() async throws {
        let links = (0...20_000).map { #"{"frameId":"f\#($0)","downloadUrl":"http://127.0.0.1:81/f\#($0)?s=1"}"# }
        let answer = #"{"jobId":"job-1","frames":[\#(links.joined(separator: ","))]}"#
        let place = try VOPIClientPlace { asked, _ in
            .json(200, asked.path.hasSuffix("/download-urls") ? answer : #"{"id":"job-1","status":"completed"}"#)
        }
        try await place.keep()
        let folder = place.folder.path.appending("results")
        let results = VOPIResults(
            api: try place.api(), client: place.client, pool: BlockingPool(name: "list", threads: 2))
        let error = await failure { () throws(DeliveryError) in try await results.fetch(job: "job-1", into: folder) }
        #expect(error?.verdict == .giveUp && error?.code == .answerTooLarge)
        #expect(!FileManager.default.fileExists(atPath: folder.string))
    }

    @Test func `a picture that somebody else has fetched meanwhile is there`() async throws {
        let folder = try TemporaryDirectory()
        let target = "images/hero/solid.gif"
        let address = Listing<String>()
        let place = try VOPIClientPlace { asked, _ in
            if asked.path.hasSuffix("/download-urls") {
                let link = (address.all.first ?? "") + "/store/solid.gif?s=1"
                return .json(200, #"{"jobId":"job-1","commercialImages":{"hero":{"solid":"\#(link)"}}}"#)
            }
            if asked.path.hasPrefix("/store/") {
                try folder.write("GIF89a picture".utf8, to: FilePath(target))
                return .init(headers: [("content-type", "image/gif")], body: "GIF89a picture")
            }
            return .json(200, #"{"id":"job-1","status":"completed"}"#)
        }
        address.add(place.server.address)
        try await place.keep()
        let results = VOPIResults(
            api: try place.api(), client: place.client, pool: BlockingPool(name: "list", threads: 2))
        let summary = try await results.fetch(job: "job-1", into: folder.path)
        #expect(summary.files == [target, "product.json"] && summary.missing == [])
        // No half of our own is left beside it.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path.appending("images/hero").string)
        #expect(names == ["solid.gif"])
    }
}
