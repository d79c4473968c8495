import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct DownloadCheckTests {
    private func server(_ fields: String = "", _ body: String = "abcdef") throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(headers: fields, body)
            }
        }
    }

    private func failure(_ shelf: Shelf, _ download: Download, _ server: ScriptedServer) async throws -> ErrorCode? {
        let url = try server.url()
        do throws(TransferError) {
            let open = try await shelf.downloader.open(download)
            let request = HTTPRequest("GET", url, headers: open.headers)
            _ = try await shelf.downloader.fetch(open, request)
            _ = try await shelf.downloader.finish(open)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a length or checksum that differs keeps the file out`() async throws {
        let shelf = try Shelf()
        let wrong = Digest(.md5, Array(repeating: 7, count: 16))
        let downloads: [(Download, ErrorCode)] = [
            (Download(target: shelf.target, length: 7), .corrupted),
            (Download(target: shelf.target, digest: wrong), .corrupted),
            (Download(target: shelf.target, limit: 5), .answerTooLarge),
        ]
        for (download, code) in downloads {
            #expect(try await failure(shelf, download, server()) == code)
            #expect(try !shelf.names().contains("picture.png"))
        }
        let right = Download(target: shelf.target, length: 6, digest: Checksum.md5("abcdef".utf8), limit: 6)
        #expect(try await failure(shelf, right, server()) == nil)
        #expect(try shelf.content() == "abcdef")
    }

    @Test(arguments: [
        "Repr-Digest: sha-256=:%:\r\n", "x-amz-checksum-sha256: %\r\n", "repr-digest: md5=:eA==:, sha-256=:%:\r\n",
    ])
    func `a checksum that the server gives is held against the content`(field: String) async throws {
        let shelf = try Shelf()
        let sums = ["abcdef", "abcdeX"].map { Data(Checksum.sha256($0.utf8).bytes).base64EncodedString() }
        let fields = sums.map { field.replacing("%", with: $0) }
        #expect(try await failure(shelf, Download(target: shelf.target), server(fields[1])) == .corrupted)
        #expect(try !shelf.names().contains("picture.png"))
        #expect(try await failure(shelf, Download(target: shelf.target), server(fields[0])) == nil)
    }

    @Test func `a file that is there is replaced only where that was said`() async throws {
        let shelf = try Shelf()
        try shelf.directory.write("mine".utf8, to: "picture.png")
        #expect(try await failure(shelf, Download(target: shelf.target), server()) == .destinationExists)
        #expect(try shelf.content() == "mine")
        #expect(try await failure(shelf, Download(target: shelf.target, replaces: true), server()) == nil)
        #expect(try shelf.content() == "abcdef")
    }

    @Test func `two do not write one file, and what was given up can be dropped`() async throws {
        let shelf = try Shelf()
        let download = Download(target: shelf.target)
        let first = try await shelf.downloader.open(download)
        #expect(try await failure(shelf, download, server()) == .conflict)
        // Somebody is at it.
        try await shelf.downloader.discard(download)
        #expect(try shelf.names() == [".picture.png.inlet-part"])
        withExtendedLifetime(first) {}
    }

    @Test func `dropping leaves nothing, twice`() async throws {
        let shelf = try Shelf()
        let download = Download(target: shelf.target)
        let cut = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 6\r\n\r\nabc")
        }
        #expect(try await failure(shelf, download, cut) == .connectionLost)
        #expect(try shelf.names() == [".picture.png.inlet-part", ".picture.png.inlet-part.tag"])
        for _ in 1...2 { try await shelf.downloader.discard(download) }
        #expect(try shelf.names() == [])
    }

    @Test func `a cancelled download ends at once and keeps what came`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 600000\r\n\r\n" + text(1000))
            connection.waitForEnd()
        }
        let shelf = try Shelf()
        let came = Seen<Int64>()
        let open = try await shelf.downloader.open(Download(target: shelf.target) { done, _ in came.append(done) })
        let request = HTTPRequest("GET", try server.url())
        let task = Task { try await shelf.downloader.fetch(open, request) }
        try await eventually("bytes have come") { came.all.last == 1000 }
        task.cancel()
        let error = await #expect(throws: TransferError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(open.position == 1000)
        #expect(open.headers.first?.value == "bytes=1000-")
    }

    @Test func `what is fetched into an open folder goes there, whatever is in its place by then`() async throws {
        let shelf = try Shelf()
        let (sub, moved) = (try shelf.directory.makeDirectory("sub"), shelf.directory.path.appending("moved"))
        let outside = try shelf.directory.makeDirectory("outside")
        let download = Download(target: sub.appending("picture.png"), in: try Folder(sub))
        try FileManager.default.moveItem(atPath: sub.string, toPath: moved.string)
        try FileManager.default.createSymbolicLink(atPath: sub.string, withDestinationPath: outside.string)
        #expect(try await failure(shelf, download, server()) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.string) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved.string) == ["picture.png"])
        try await shelf.downloader.discard(download)
    }

    @Test func `a name of the longest kind has a part-file too`() async throws {
        let shelf = try Shelf()
        let name = String(repeating: "ü", count: 125) + ".png"
        let target = shelf.directory.path.appending(name)
        #expect(try await failure(shelf, Download(target: target), server()) == nil)
        #expect(try shelf.names() == [name])
    }
}
