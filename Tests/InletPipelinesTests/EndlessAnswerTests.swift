import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Servers that send more than they should, or never all of it.
@Suite(.timeLimit(.minutes(4))) struct EndlessAnswerTests {
    private func url(_ server: ScriptedServer) throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(server.port)/x", rules: .configured(allowHTTP: false))
    }

    @Test(arguments: [0, 1000]) func `a check ends where there is more than was delivered`(size: Int64) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while true { try connection.write("400\r\n\(String(repeating: "x", count: 1024))\r\n") }
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let order = VerifyOrder(proof: Proof(key: "k", size: size, method: .size), readsBytes: true)
        let found = try await client.check(HTTPRequest("GET", url(server)), order)
        #expect(found.verification == .differs("it has more than \(size) bytes"))
    }

    @Test(arguments: [(100_000, 1, false), (160_000, 20_000, true)])
    func `a server that gives a piece at a time is asked on only where the pieces are good`(
        whole: Int, piece: Int, isGood: Bool
    ) async throws {
        let asked = Listing<String?>()
        let server = try ScriptedServer { connection in
            let range = try connection.readRequest().headers["range"]
            asked.add(range)
            let from = range.flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let part = "206 Partial Content\r\nContent-Range: bytes \(from)-\(whole - 1)/\(whole)"
            let (head, body) = (from == 0 ? "200 OK" : part, String(repeating: "x", count: piece))
            try connection.write("HTTP/1.1 \(head)\r\nETag: \"v\"\r\nContent-Length: \(whole - from)\r\n\r\n\(body)")
        }
        let directory = try TemporaryDirectory()
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let (base, target) = (try url(server), directory.path.appending("file"))
        let fetching = Fetching(client: client, pool: BlockingPool(name: "endless", threads: 1))
        var size: Int64?
        do throws(DeliveryError) {
            size = try await fetching.run(Download(target: target)) { next throws(DeliveryError) in
                HTTPRequest("GET", base, headers: next.headers)
            }.size
        } catch {
            #expect(error.code == .connectionLost)
            #expect(asked.all == [nil, "bytes=1-", "bytes=2-", "bytes=3-", "bytes=4-"])
        }
        #expect(size == (isGood ? Int64(whole) : nil))
    }

    @Test(
        arguments: [
            // One file, then what the job has left.
            (0, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: 4 * gib, isOfDisk: false)),
            (63 * gib, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: gib, isOfDisk: false)),
            (64 * gib, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: 0, isOfDisk: false)),
            // Three quarters of what the disk has, but for a gibibyte, and of what others may not write yet.
            (0, 5 * gib, 0, VOPIDiskQuota.Limit(bytes: 3 * gib, isOfDisk: true)),
            (0, 5 * gib, 3 * gib, VOPIDiskQuota.Limit(bytes: 768 * mib, isOfDisk: true)),
            // A picture may come beside the largest of others: what stays free is for that.
            (0, 5 * gib, 4 * gib, VOPIDiskQuota.Limit(bytes: 64 * mib, isOfDisk: true)),
            (0, gib + 8 * mib, 0, VOPIDiskQuota.Limit(bytes: 8 * mib, isOfDisk: true)),
            (0, gib, 0, VOPIDiskQuota.Limit(bytes: 0, isOfDisk: true)),
        ] as [(Int64, Int64, Int64, VOPIDiskQuota.Limit)])
    func `a job's results fill neither the disk nor more than their share`(
        taken: Int64, available: Int64, promised: Int64, limit: VOPIDiskQuota.Limit
    ) {
        #expect(
            VOPIDiskQuota.limit(taken: taken, available: available, total: 1000 * gib, promised: promised) == limit)
    }

    @Test func `of a small disk a twentieth stays free`() {
        let limit = VOPIDiskQuota.limit(taken: 0, available: 100 * mib, total: 200 * mib, promised: 0)
        #expect(limit == VOPIDiskQuota.Limit(bytes: 90 * mib / 4 * 3, isOfDisk: true))
        #expect(VOPIDiskQuota.limit(taken: 0, available: 5 * mib, total: 200 * mib, promised: 0).bytes <= 0)
    }

    @Test func `however many fetch at once, they are promised less than the disk has`() {
        for (available, total) in [(10 * gib, 1000 * gib), (500 * mib, gib), (90 * mib, 100 * mib)] {
            for files in [1, 4, 16] {
                var promised: Int64 = 0
                for _ in 0..<files {
                    promised += max(
                        0, VOPIDiskQuota.limit(taken: 0, available: available, total: total, promised: promised).bytes)
                }
                #expect(promised <= available, "\(files): \(promised)")
            }
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `jobs share what one disk has, and give it back`() throws {
        let folder = try TemporaryDirectory()
        let disk = try TestMount("tmpfs", at: folder.makeDirectory("disk"), options: "size=200m")
        defer { disk.unmount() }
        let (one, other) = (VOPIDiskQuota(disk.path, taken: 0), VOPIDiskQuota(disk.path, taken: 0))
        let (first, second) = (try one.begin(), try other.begin())
        #expect(first.isOfDisk && first.bytes > 100 * mib && second.bytes < first.bytes / 2)
        one.end(first)
        other.end(second)
        #expect(try other.begin() == first)
        other.end(first)
    }

    @Test func `a file that does not fit the disk waits for room, one that is too large is given up`() {
        let room = VOPIDiskQuota("/", taken: 0)
        let error = DeliveryError(.giveUp, .answerTooLarge, "too large")
        #expect(room.judged(error, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: false)) == error)
        let full = room.judged(error, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: true))
        #expect(full.code == .destinationFull && full.verdict == .outage(after: nil))
        let other = DeliveryError(.retry(after: nil), .connectionLost, "lost")
        #expect(room.judged(other, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: true)) == other)
    }
}

private let (mib, gib): (Int64, Int64) = (1 << 20, 1 << 30)
