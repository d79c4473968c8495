import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct S3FaultTests {
    private static let body = Data("0123456789".utf8)

    @Test func `a store that wants to be asked less often says so`() async throws {
        try await withS3(faults: S3Fault(.reply(.slowDown(retryAfter: 3)), at: .putObject)) {
            sandbox, client async throws in
            let answer = try await client.send("PUT", "a", Self.body)
            #expect(answer.refusal == "503 SlowDown" && answer.headers["retry-after"] == "3")
            #expect(try await client.send("PUT", "a", Self.body).status == 200)
            #expect(sandbox.faults.injected(at: .putObject) == 1)
        }
    }

    @Test func `complete may answer 200 and mean an error`() async throws {
        try await withS3(faults: S3Fault(.reply(.errorIn200), at: .completeMultipartUpload)) {
            sandbox, client async throws in
            let (upload, etags) = try await client.open("a", [Self.body])
            #expect(try await client.complete("a", upload, etags).refusal == "200 InternalError")
            #expect(sandbox.openUploads() == [upload])
            #expect(try await client.complete("a", upload, etags).refusal == "200 ")
        }
    }

    @Test func `the answer can be lost after the work is done`() async throws {
        try await withS3(faults: S3Fault(.loseAnswer, at: .putObject)) { sandbox, client async throws in
            #expect([52, 56].contains(try await client.curl("PUT", "a", "hello")))
            #expect(sandbox.objects().map(\.versions) == [1])
            let (upload, etags) = try await client.open("a", [Self.body])
            sandbox.faults.add(S3Fault(.loseAnswer, at: .completeMultipartUpload))
            let list = S3Client.list(etags)
            #expect([52, 56].contains(try await client.curl("POST", "a", query: [("uploadId", upload)], list)))
            #expect(sandbox.objects().map(\.versions) == [2] && sandbox.openUploads().isEmpty)
        }
    }

    @Test func `an error can come after the work is done`() async throws {
        let error = FaultAction.replyAfterWork(.s3(500, "InternalError"))
        try await withS3(faults: S3Fault(error, at: .putObject)) { sandbox, client async throws in
            #expect(try await client.send("PUT", "a", Self.body).refusal == "500 InternalError")
            #expect(try content(of: try #require(sandbox.objects().first).path) == Self.body)
        }
    }

    @Test func `a reset leaves nothing of the body`() async throws {
        try await withS3(faults: S3Fault(.reset(afterBytes: 3), at: .putObject)) { sandbox, client async throws in
            #expect([52, 55, 56].contains(try await client.curl("PUT", "a", "hello")))
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `wrong and missing ETags come from parts, single puts and complete`() async throws {
        try await withS3 { sandbox, client async throws in
            sandbox.faults.add(S3Fault(.wrongETag(.random), at: .putObject), S3Fault(.missingETag, at: .putObject))
            let wrong = try await client.send("PUT", "a", Self.body)
            #expect(wrong.headers["etag"]?.count == 34 && wrong.headers["etag"] != "\"\(md5(Self.body))\"")
            #expect(try await client.send("PUT", "a", Self.body).headers["etag"] == nil)
            sandbox.faults.add(S3Fault(.wrongETag(.random), at: .uploadPart, part: 1))
            let (upload, etags) = try await client.open("b", [Self.body])
            #expect(etags[0].1 != "\"\(md5(Self.body))\"")
            let listed = try await client.send("GET", "b", query: [("uploadId", upload)])
            #expect(listed.xml("ETag") == etags[0].1.replacing("\"", with: "&quot;"))
            sandbox.faults.add(S3Fault(.missingETag, at: .completeMultipartUpload))
            let answer = try await client.complete("b", upload, etags)
            #expect(answer.status == 200 && answer.xml("ETag") == nil)
        }
    }

    @Test(arguments: S3Operation.allCases.filter { $0 != .unknown })
    func `every operation can be made to fail`(_ operation: S3Operation) async throws {
        try await withS3 { sandbox, client async throws in
            let (upload, etags) = try await client.open("a", [Self.body])
            sandbox.faults.add(S3Fault(.html, at: operation))
            let id = [("uploadId", upload)]
            let answer =
                switch operation {
                case .putObject: try await client.send("PUT", "a", Self.body)
                case .getObject: try await client.send("GET", "a")
                case .headObject: try await client.send("HEAD", "a")
                case .deleteObject: try await client.send("DELETE", "a")
                case .createMultipartUpload: try await client.send("POST", "a", query: [("uploads", "")])
                case .uploadPart: try await client.part("a", upload, 1, Self.body)
                case .listParts: try await client.send("GET", "a", query: id)
                case .listMultipartUploads: try await client.send("GET", "", query: [("uploads", "")])
                case .completeMultipartUpload: try await client.complete("a", upload, etags)
                case .abortMultipartUpload: try await client.send("DELETE", "a", query: id)
                case .listObjects: try await client.send("GET", "", query: [("list-type", "2")])
                case .headBucket, .unknown: try await client.send("HEAD", "")
                }
            #expect(answer.status == 200 && answer.headers["content-type"] == "text/html")
            #expect(sandbox.faults.injected(at: operation) == 1)
        }
    }
}
