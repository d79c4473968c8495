import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

/// A file between two texts, as one body.
@Suite(.timeLimit(.minutes(8))) struct HTTPClientFormTests {
    private static let header = Array("--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".utf8)
    private static let footer = Array("\r\n--b--\r\n".utf8)

    private static func form(_ source: SourceFile, _ offset: Int, _ length: Int) -> HTTPBody {
        .form(header: header, source, offset: Int64(offset), length: Int64(length), footer: footer)
    }

    @Test(arguments: [(0, 0), (0, 1), (7, 100_000), (0, 1_000_000), (999_999, 1)])
    func `a form is header, bytes and footer, and only the file's count`(offset: Int, length: Int) async throws {
        let bytes = pattern(1_000_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            seen.append(try connection.readRequest())
            try connection.answer("201 Created")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("POST", try server.url(), body: Self.form(source, offset, length))
        #expect(try await makeClient().send(request, meter: meter).status == 201)
        let got = try #require(seen.all.first)
        #expect(got.body == Self.header + bytes[offset..<offset + length] + Self.footer)
        #expect(got.headers["content-length"] == String(Self.header.count + length + Self.footer.count))
        #expect(got.headers["transfer-encoding"] == nil && got.headers["expect"] == nil)
        #expect(meter.bytesSent == Int64(length))
    }

    @Test func `a form that is refused counts nothing`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(50_000), to: "f"))
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("413 Payload Too Large")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("POST", try server.url(), body: Self.form(source, 0, 50_000))
        #expect(try await makeClient().send(request, meter: meter).status == 413)
        #expect(meter.bytesSent == 0)
    }

    @Test func `the end of a form is held back from a file that was written to`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(pattern(100_000), to: "f")
        let source = try SourceFile(opening: path)
        let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
        try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: 5, [1, 2, 3]) }
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in seen.append(try connection.readRequest()) }
        let error = await failure(
            makeClient(), HTTPRequest("POST", try server.url(), body: Self.form(source, 0, 100_000)))
        #expect(seen.all.isEmpty)
        #expect(error?.code == .sourceChanged)
    }

    @Test func `progress of a form is that of its file`() throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(100), to: "f"))
        let body = Self.form(source, 0, 100)
        let start = Int64(Self.header.count)
        let table: [(Int64, Int64)] = [
            (0, 0), (start - 1, 0), (start, 0), (start + 1, 1), (start + 100, 100), (body.length, 100),
        ]
        for (sent, counted) in table { #expect(body.payload(in: sent) == counted) }
        #expect(HTTPBody.bytes([1, 2, 3]).payload(in: 2) == 2)
    }

    @Test func `a server may work in silence longer than a line may stall`() {
        let start = ContinuousClock.now
        func deadlines() -> Deadlines {
            Deadlines(
                stall: .seconds(60), silence: .seconds(330), answer: .seconds(330), sendsBody: true, now: start)
        }
        let stalled = deadlines()
        #expect(stalled.verdict(at: start.advanced(by: .seconds(60))) == .stalled)
        var working = deadlines()
        working.bodyEnded(at: start)
        #expect(working.verdict(at: start.advanced(by: .seconds(329))) == nil)
        #expect(working.next == start.advanced(by: .seconds(330)))
        #expect(working.verdict(at: start.advanced(by: .seconds(330))) == .timedOut)
        var dripping = deadlines()
        dripping.bodyEnded(at: start)
        dripping.answerMoved(at: start)
        #expect(dripping.verdict(at: start.advanced(by: .seconds(60))) == .stalled)
    }
}

/// A hash that moves on.
struct RunningHashTests {
    private let pool = BlockingPool(name: "hash", threads: 1)

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `steps of any size come to the hash of the whole`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let size = Int.random(in: 0...700_000, using: &generator)
        let bytes = pattern(size, seed: seed + 1)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        var hash = RunningHash()
        for _ in 0..<5 {
            // Also backwards, which changes nothing.
            let end = Int64.random(in: 0...Int64(size), using: &generator)
            hash = try await hash.advanced(to: end, of: source, on: pool)
            #expect(hash.digest == Checksum.sha256(bytes[..<Int(hash.position)]))
        }
        hash = try await hash.advanced(to: Int64(size), of: source, on: pool)
        #expect(hash.digest == Checksum.sha256(bytes))
    }
}
