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
            let result = try await place.inlet(
                "check", "--upload", code: 0, says: "stored a test object, verified by", "the test object was removed",
                "composed one of parts, verified by")
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
            try await place.inlet(
                "check", "--upload", code: 1,
                says: "the store ignores If-None-Match: if_exists fail and version would overwrite")
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `a listing has length, time and key of what is there`() async throws {
        try await withS3 { place, sandbox in
            for name in ["a.bin", "b.bin"] {
                let file = try place.folder.write(bytes(name == "a.bin" ? 10 : 3000), to: FilePath(name))
                try await place.inlet("send", file.string, code: 0)
            }
            let all = try await place.inlet("storage", "list", "store", code: 0)
            let line = /\s+(\d+)  20\d\d-\d\d-\d\dT\S+  (.+)/
            let told = all.output.split(separator: "\n").map { $0.wholeMatch(of: line).map { "\($0.1) \($0.2)" } }
            #expect(told == ["10 a.bin", "3000 b.bin"], "\(all.output)")
            let one = try await place.inlet("storage", "list", "store", "b", "--json").objects()
            #expect(one.map { $0["key"] as? String } == ["b.bin"] && one.first?["size"] as? Int == 3000)
            #expect(sandbox.objects().map(\.key) == ["a.bin", "b.bin"])
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
            let result = try await place.inlet("storage", "list", "store", code: 0)
            #expect(result.output.trimmingPrefix { $0 == " " } == "12  2026\\x1B[31m\\x0A-11-21  a\\x0Ab\n")
        }
    }
}
