import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet fetch`: objects by key and files by address, onto this machine.
@Suite(.serialized) struct FetchTests {
    /// A machine with a Spiral store that holds `film.mov`.
    private func withFilm(
        _ content: Data = bytes(3 << 20), _ settings: String = "",
        _ body: @Sendable @escaping (Place, SpiralSandbox) async throws -> Void
    ) async throws {
        try await withSpiral(settings) { place, sandbox in
            let file = try place.folder.write(content, to: "film.mov")
            let sent = try await place.inlet("send", file.string)
            try #require(sent.ending == .code(0), "\(sent.errors)")
            try await body(place, sandbox)
        }
    }

    @Test(arguments: [0, 1, 3 << 20])
    func `an object comes back by its key, byte for byte`(_ size: Int) async throws {
        try await withFilm(bytes(size)) { place, _ in
            let target = place.folder.path.appending("copy.mov")
            let fetched = try await place.inlet("fetch", "film.mov", "-o", target.string, code: 0)
            #expect(try place.content(target) == bytes(size))
            #expect(fetched.output.contains("film.mov → \(target.string)"))
            #expect(!(fetched.output + fetched.errors).contains("X-Amz"))
        }
    }

    @Test func `a store that speaks S3 gives its objects too, under their names into a folder`() async throws {
        try await withS3 { place, sandbox in
            let content = bytes(6 << 20)
            try place.put("gigs/a film.mov", content)
            try await place.runUntil("job.finished")
            sandbox.faults.add(S3Fault(.truncateAnswer(afterBytes: 1 << 20), at: .getObject, times: 3))
            let folder = try place.folder.makeDirectory("fetched")
            try await place.inlet("fetch", "gigs/a film.mov", "--from", "store", "--output", folder.string, code: 0)
            #expect(try place.content(folder.appending("a film.mov")) == content)
            #expect(sandbox.traffic.counts[.getObject] == 4)
            try place.configure(replacing: "sandbox-secret-93f1", with: "another-secret")
            let refused = try await place.inlet(
                "fetch", "gigs/a film.mov", "-o", folder.appending("b").string, code: 69)
            #expect(!refused.errors.contains("another-secret"))
        }
    }

    @Test func `an address needs no configuration`() async throws {
        try await withFilm { place, sandbox in
            let address = "http://127.0.0.1:\(try await sandbox.port())/public/film.mov"
            try await InletProcess.run(["fetch", address], in: place.folder.path.appending("drop"), code: 0)
            #expect(try place.content(place.drop.appending("film.mov")) == bytes(3 << 20))
            sandbox.faults.add(
                Fault(.redirect(to: "/public/film.mov?again=1"), at: .read),
                Fault(.redirect(to: address), at: .read))
            try await InletProcess.run(["fetch", address, "-o", "led.mov"], in: place.folder.path, code: 0)
            #expect(try place.content(place.folder.path.appending("led.mov")) == bytes(3 << 20))
            sandbox.faults.add(Fault(.redirect(to: address), at: .read, times: nil))
            try await InletProcess.run(
                ["fetch", address, "-o", "circle.mov"], in: place.folder.path, code: 1, errors: "[redirected]")
            sandbox.faults.clear()
            let foreign = try await InletProcess.run(
                ["fetch", "http://192.0.2.1/film.mov", "-o", "x"], in: place.folder.path, code: 1,
                errors: "is not encrypted")
            #expect(!foreign.errors.contains("allow_http"))
        }
    }

    @Test func `a fetch that was killed is gone on with where it stopped`() async throws {
        let content = bytes(8 << 20)
        try await withFilm(content) { place, sandbox in
            let target = place.folder.path.appending("copy.mov")
            let before = sandbox.traffic.counts[.read] ?? 0
            sandbox.faults.add(
                Fault(.truncateAnswer(afterBytes: 5 << 20), at: .read), Fault(.stall, at: .read, times: nil))
            let killed = try place.start("fetch", "film.mov", "-o", target.string)
            try await killed.wait("the second request") { (sandbox.traffic.counts[.read] ?? 0) >= before + 2 }
            try await killed.kill()
            #expect(!place.exists(target))
            sandbox.faults.clear()
            try await place.inlet("fetch", "film.mov", "-o", target.string, code: 0, says: "of it from before")
            #expect(try place.content(target) == content)
            let left = try FileManager.default.contentsOfDirectory(atPath: place.folder.path.string)
            #expect(!left.contains { $0.hasPrefix(".copy.mov") })
        }
    }

    @Test func `a file that is there is left alone unless it may be replaced, and another checksum leaves none`()
        async throws
    {
        try await withFilm(bytes(0)) { place, _ in
            let target = try place.folder.write(bytes(5), to: "mine.mov")
            let fetch = ["fetch", "film.mov", "-o", target.string]
            try await place.inlet(fetch, code: 1, errors: "is there already; --force replaces it")
            #expect(try place.content(target) == bytes(5))
            try await place.inlet(fetch + ["--force"], code: 0)
            #expect(try place.content(target) == bytes(0))
            try FileManager.default.removeItem(atPath: target.string)
            let wrong = String(repeating: "0", count: 64)
            try await place.inlet(fetch + ["--sha256", wrong], code: 1, errors: "[corrupted]")
            #expect(!place.exists(target))
            let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            try await place.inlet(fetch + ["--sha256", empty], code: 0, says: "sha256 checked")
        }
    }

    @Test func `what cannot be fetched says so with the code for it`() async throws {
        try await withFilm { place, _ in
            try await place.inlet("fetch", "nothing.mov", code: 1, errors: "[not_found]")
            try await place.inlet(
                "fetch", "film.mov", "--from", "stor", "-o", "there.mov", code: 78, errors: "no destination 'stor'")
            for arguments in [
                ["fetch", "film.mov", "--sha256", "12"], ["fetch", "https://cdn.example/"],
                ["fetch", "https://cdn.example/a.mov", "--from", "store"],
            ] {
                try await place.inlet(arguments, code: 64)
            }
            let folder = place.folder.path.appending("none")
            try await place.inlet(
                "fetch", "film.mov", "-o", folder.appending("a.mov").string, code: 1,
                errors: "folder \(folder.string) is not there")
            try place.configure(.spiral(try FreePort.any()))
            try await place.inlet("fetch", "film.mov", "-o", "there.mov", code: 69)
        }
        let place = try Place()
        try await place.inlet(
            "fetch", "film.mov", "--from", "store", code: 78, errors: "of type folder, whose objects cannot be fetched")
    }
}

/// The commands that look into a bucket.
@Suite(.serialized) struct S3Tests {
    @Test(arguments: ["overwrite", "version", "fail"])
    func `check --upload stores a test object, and removes it`(_ ifExists: String) async throws {
        try await withS3("if_exists: \(ifExists)") { place, sandbox in
            let result = try await place.inlet(
                "check", "--upload", code: 0, says: "stored a test object, verified by", "the test object was removed",
                "composed one from parts, verified by")
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
                says: "the store ignores If-None-Match: 'if_exists: fail' and 'version' would overwrite")
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `a store is asked once which checksum it compares, and receipts name it`() async throws {
        try await withS3("verify: auto") { place, sandbox in
            try await place.inlet("check", code: 0, says: "✓ destination store: verify: auto uses crc64nvme")
            #expect(sandbox.objects().isEmpty && sandbox.openUploads().isEmpty)
            for name in ["a.bin", "b.bin"] {
                try place.put(FilePath(name), bytes(1000))
                try await place.runUntil("job.finished") { $0.isAbout(name) && $0["state"] == "delivered" }
            }
            // Once by `check`, once by the first agent; the second has it from the journal.
            #expect(sandbox.traffic.counts[.headObject] == 2)
            let receipts = try await place.inlet("receipts").objects()
            let deliveries = receipts.compactMap { ($0["deliveries"] as? [[String: Any]])?.first }
            let digests = deliveries.compactMap { $0["digest"] as? String }
            #expect(digests.count == 2 && digests.allSatisfy { $0.hasPrefix("crc64nvme:") }, "\(receipts)")
            #expect(sandbox.objects().map(\.key) == ["a.bin", "b.bin"])
        }
    }

    @Test func `a listing has length, time and key of what is there`() async throws {
        try await withS3 { place, sandbox in
            for name in ["a.bin", "b.bin"] {
                let file = try place.folder.write(bytes(name == "a.bin" ? 10 : 3000), to: FilePath(name))
                try await place.inlet("send", file.string, code: 0)
            }
            let all = try await place.inlet("storage", "list", "store", code: 0)
            let line = /(\d+)\t20\d\d-\d\d-\d\dT\S+\t(.+)/
            let told = all.output.split(separator: "\n").dropFirst().map {
                $0.wholeMatch(of: line).map { "\($0.1) \($0.2)" }
            }
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
            #expect(result.output == "BYTES\tMODIFIED\tKEY\n12\t2026\\x1B[31m\\x0A-11-21\ta\\x0Ab\n")
        }
    }
}
