import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The commands that look into a bucket.
@Suite(.serialized) struct S3Tests {
    @Test(arguments: ["overwrite", "version", "fail"])
    func `check --upload stores a test object, and removes it`(_ ifExists: String) async throws {
        try await withS3("if_exists: \(ifExists)") { place, sandbox in
            let result = try await place.inlet("check", "--upload")
            #expect(result.ending == .code(0), "\(result.output)")
            #expect(result.output.contains("stored a test object, verified by"))
            #expect(result.output.contains("the test object was removed"))
            #expect(result.output.contains("composed one of parts, verified by"))
            #expect(result.output.contains("the store honours If-None-Match, which") == (ifExists != "overwrite"))
            #expect(sandbox.objects().isEmpty && sandbox.openUploads().isEmpty)
            #expect(sandbox.traffic.counts[.putObject] == (ifExists == "overwrite" ? 1 : 2))
        }
    }

    @Test func `check --upload warns of a store that overwrites all the same`() async throws {
        try await withS3("if_exists: version") { place, sandbox in
            // The test object goes its way; the second PUT is taken as if nothing had been asked.
            sandbox.faults.add(
                S3Fault(.delay(.zero), at: .putObject), S3Fault(.reply(FaultReply(200, body: "")), at: .putObject))
            let result = try await place.inlet("check", "--upload")
            #expect(result.ending == .code(1), "\(result.output)")
            #expect(
                result.output.contains("the store ignores If-None-Match: if_exists fail and version would overwrite"))
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `what a store says of its objects does not reach the terminal raw`() async throws {
        try await withS3("if_exists: overwrite") { place, sandbox in
            let listing = """
                <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a&#10;b</Key>\
                <LastModified>2026&#27;[31m&#10;-11-21</LastModified><Size>12</Size></Contents></ListBucketResult>
                """
            let reply = FaultReply(200, type: "application/xml", body: listing)
            sandbox.faults.add(S3Fault(.reply(reply), at: .listObjects))
            let result = try await place.inlet("storage", "list", "store")
            #expect(result.ending == .code(0), "\(result.errors)")
            #expect(result.output.trimmingPrefix { $0 == " " } == "12  2026\\x1B[31m\\x0A-11-21  a\\x0Ab\n")
        }
    }
}
