import Foundation
import InletCore
import InletSandbox
import Testing

@Suite struct VOPIJobTests {
    private static let steps = [
        "downloading", "extracting", "scoring", "classifying", "extracting_product", "generating", "completed",
    ]

    @Test func `a job reads pending, with everything unset, until it has completed`() async throws {
        try await withVOPI { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            let early = try await client.get("/jobs/\(id)").value
            #expect(early["status"] == "pending" && early["progress"] == [:] && early["result"] == [:])
            #expect(early["error"] == "" && early["startedAt"] == "" && early["completedAt"] == "")
            let rest = try await client.statuses(of: id, 6)
            #expect(rest == Array(repeating: "pending", count: 5) + ["completed"])
            let late = try await client.get("/jobs/\(id)").value
            #expect(late["progress"] == [:] && late["startedAt"] == "" && late["completedAt"]?.text?.count == 24)
            #expect(late["result"]?["finalFrames"]?.items?.count == 3)
            #expect(sandbox.tally.charges == 1 && sandbox.credits == 4)
            #expect(sandbox.jobs().map(\.step) == [.completed])
        }
    }

    @Test(arguments: [VOPIRules.Progress.status, .full])
    func `a server may tell the steps`(_ progress: VOPIRules.Progress) async throws {
        try await withVOPI(rules: VOPIRules(progress: progress)) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 7) == Self.steps)
            let other = try await client.job(noise(5000, seed: 2))
            let told = try await client.get("/jobs/\(other)").value["progress"]
            #expect(told?["percentage"]?.number == (progress == .full ? 5 : nil))
            #expect(told?["step"]?.text == (progress == .full ? "downloading" : nil))
        }
    }

    @Test func `the clock, or nobody but the test, may move jobs`() async throws {
        let clock = TestClock()
        let rules = VOPIRules(pace: .clock(step: .seconds(10)))
        try await withVOPI(rules: rules, clock: clock) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            clock.pass(.seconds(69))
            #expect(try await client.statuses(of: id, 2) == ["pending", "pending"])
            clock.pass(.seconds(1))
            #expect(try await client.statuses(of: id, 1) == ["completed"])
            let begun = try await client.job(noise(5000, seed: 3))
            clock.pass(.seconds(10))
            #expect(try await client.cancel(begun).status == 200)
            clock.pass(.seconds(60))
            #expect(sandbox.jobs().map(\.status) == ["completed", "completed"])
            sandbox.rules.pace = .manual
            let other = try await client.job(noise(5000, seed: 2))
            // Less than the login lives.
            clock.pass(.seconds(500))
            #expect(try await client.statuses(of: other, 2) == ["pending", "pending"])
            sandbox.advance(steps: 7)
            #expect(try await client.statuses(of: other, 1) == ["completed"])
        }
    }

    @Test func `failed is not the end where a try is left, and the error stays`() async throws {
        var rules = VOPIRules.quick
        rules.outcome = .fails(times: 2, error: "No frames found")
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 3) == ["failed", "failed", "completed"])
            #expect(try await client.get("/jobs/\(id)").value["error"] == "No frames found")
            #expect(sandbox.tally.charges == 1)
        }
    }

    @Test func `after the third try failed stays`() async throws {
        var rules = VOPIRules.quick
        rules.outcome = .fails("No frames found")
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 5) == Array(repeating: "failed", count: 5))
            #expect(sandbox.jobs().map(\.failures) == [3] && sandbox.pictures(of: id).isEmpty)
            #expect(try await client.get("/jobs/\(id)/download-urls").coded == "400 BAD_REQUEST")
        }
    }

    @Test func `a cancel stops only what has not begun`() async throws {
        try await withVOPI(rules: VOPIRules(pace: .manual)) { sandbox, client async throws in
            let queued = try await client.job(noise(5000, seed: 1))
            let cancelled = try await client.cancel(queued)
            #expect(cancelled.status == 200 && cancelled.value["status"] == "cancelled")
            #expect(try await client.cancel(queued).coded == "400 BAD_REQUEST")
            let running = try await client.job(noise(5000, seed: 2))
            sandbox.advance()
            #expect(try await client.cancel(running).status == 200)
            sandbox.advance(steps: 20)
            #expect(try await client.statuses(of: queued, 1) == ["cancelled"])
            #expect(try await client.statuses(of: running, 1) == ["completed"])
            #expect(sandbox.jobs().map(\.isCharged) == [false, true] && sandbox.tally.cancels == 2)
            #expect(try await client.cancel(UUID().uuidString).coded == "404 NOT_FOUND")
        }
    }

    @Test func `a job can be deleted with all that it has made`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 1)
            let file = try #require(sandbox.pictures(of: id).first?.object.path)
            #expect(try content(of: file).starts(with: [0x89, 0x50, 0x4E, 0x47]))
            let gone = try await client.delete(id)
            #expect(gone.status == 204 && gone.body.isEmpty)
            #expect(try await client.delete(id).coded == "404 NOT_FOUND")
            #expect(sandbox.jobs().isEmpty && sandbox.tally.deletes == 1 && (try? content(of: file)) == nil)
        }
    }

    @Test func `a running job whose step is told can be neither cancelled nor deleted`() async throws {
        try await withVOPI(rules: VOPIRules(progress: .status)) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 2)
            #expect(try await client.cancel(id).coded == "400 BAD_REQUEST")
            #expect(try await client.delete(id).coded == "409 CONFLICT")
        }
    }

    @Test func `no credits fail a job, and new ones mend it`() async throws {
        try await withVOPI(rules: .quick, credits: 0) { sandbox, client async throws in
            let url = SandboxJSON.string(try await client.upload(noise(5000, seed: 1)))
            let dear = try await client.create(["videoUrl": url, "estimatedDurationSeconds": 30])
            #expect(dear.coded == "403 INSUFFICIENT_CREDITS")
            let id = try await client.create(["videoUrl": url]).value["id"]?.text ?? ""
            #expect(try await client.statuses(of: id, 1) == ["failed"])
            let error = try await client.get("/jobs/\(id)").value["error"]?.text ?? ""
            #expect(error.hasPrefix("Insufficient credits. Required: 1, available: 0."))
            sandbox.credits = 2
            #expect(try await client.statuses(of: id, 1) == ["completed"])
            let balance = try await client.get("/credits/balance").value
            #expect(balance["balance"]?.number == 1 && balance["transactions"]?.items?.count == 1)
            #expect(try await client.get("/credits/balance?includeHistory=false").value == ["balance": 1])
        }
    }

    @Test func `a video that is gone, and a stack nobody knows, end no job well`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let done = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: done, 1)
            let url = try #require(sandbox.videos().first?.publicURL)
            let again = try await client.create(["videoUrl": .string(url)]).value["id"]?.text ?? ""
            #expect(try await client.statuses(of: again, 1) == ["failed"])
            #expect(try await client.get("/jobs/\(again)").value["error"]?.text == "Failed to download \(url): 404")
            sandbox.rules.outcome = .neverRuns
            let stuck = try await client.job(noise(5000, seed: 2))
            #expect(try await client.statuses(of: stuck, 3) == ["pending", "pending", "pending"])
            #expect(sandbox.tally.jobs == 3 && sandbox.tally.charges == 1)
        }
    }
}

@Suite struct VOPIResultTests {
    private static let versions: SandboxJSON = ["commercialVersions": ["transparent", "real"]]

    /// What `download-urls` lists: name and address.
    private func links(_ answer: SandboxJSON) -> [(name: String, url: String)] {
        let frames = (answer["frames"]?.items ?? []).map {
            ($0["frameId"]?.text ?? "", $0["downloadUrl"]?.text ?? "")
        }
        let images = (answer["commercialImages"]?.fields ?? [:]).flatMap { key, versions in
            (versions.fields ?? [:]).map { ("\(key)/\($0.key)", $0.value.text ?? "") }
        }
        return frames + images
    }

    @Test func `the pictures are made of the video, and differ`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let videos = [noise(5000, seed: 1), noise(100, seed: 2)]
            var seen: Set<Data> = []
            for video in videos {
                let id = try await client.job(video, config: Self.versions)
                _ = try await client.statuses(of: id, 1)
                let answer = try await client.get("/jobs/\(id)/download-urls").value
                let links = links(answer)
                #expect(
                    links.map(\.name).sorted() == [
                        "frame_00001", "frame_00002", "frame_00003", "hero/real", "hero/transparent",
                    ])
                for link in links {
                    let picture = try await client.http.send("GET", link.url)
                    #expect(picture.status == 200 && picture.headers["content-type"] == "image/png")
                    #expect(picture.body.range(of: Data("Source\0\(sha256(video)) ".utf8)) != nil)
                    #expect(seen.insert(picture.body).inserted)
                }
                let kept = sandbox.pictures(of: id)
                #expect(kept.allSatisfy { $0.source.hex == sha256(video) } && kept.count == 5)
                #expect(Set(kept.map(\.object.sha256.hex)).isSubset(of: seen.map(sha256)))
            }
        }
    }

    @Test func `a download can go on where it was cut, while its address is good`() async throws {
        let clock = TestClock()
        let fault = VOPIFault(.truncateAnswer(afterBytes: 1000), at: .download)
        try await withVOPI(rules: .quick, faults: fault, clock: clock) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 1)
            let answer = try await client.get("/jobs/\(id)/download-urls?expiresIn=60").value
            let url = try #require(links(answer).first?.url)
            #expect([18, 56].contains(try await SandboxClient.curl("-m", "120", url)))
            let whole = try await client.http.send("GET", url)
            let etag = try #require(whole.headers["etag"])
            let rest = try await client.http.send("GET", url, headers: ["Range": "bytes=1000-", "If-Range": etag])
            #expect(rest.status == 206 && rest.body == whole.body.dropFirst(1000))
            #expect(rest.headers["content-range"] == "bytes 1000-\(whole.body.count - 1)/\(whole.body.count)")
            let other = try await client.http.send("GET", url, headers: ["Range": "bytes=1000-", "If-Range": "\"x\""])
            #expect(other.status == 200 && other.body == whole.body)
            #expect(try await client.http.send("GET", url, headers: ["Range": "bytes=9999999-"]).status == 416)
            #expect(try await client.http.send("HEAD", url).headers["content-length"] == String(whole.body.count))
            clock.pass(.seconds(61))
            #expect(try await client.http.send("GET", url).status == 403)
            sandbox.faults.add(VOPIFault(.expiredURLs, at: .downloadURLs))
            let expired = try await client.get("/jobs/\(id)/download-urls").value
            #expect(try await client.http.send("GET", links(expired)[0].url).status == 403)
        }
    }

    @Test func `links can be missing, or lead elsewhere`() async throws {
        var rules = VOPIRules.quick
        rules.droppedLinks = 2
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1), config: Self.versions)
            let job = try await client.get("/jobs/\(id)").value["result"]
            #expect(job?["finalFrames"]?.items?.count == 3 && job?["commercialImages"]?["hero"]?.fields?.count == 2)
            let answer = try await client.get("/jobs/\(id)/download-urls").value
            #expect(answer["frames"]?.items?.count == 3 && answer["commercialImages"] == ["hero": [:]])
            sandbox.faults.add(VOPIFault(.partURLs(.origin("http://203.0.113.7")), at: .downloadURLs))
            let elsewhere = try await client.get("/jobs/\(id)/download-urls").value
            #expect(links(elsewhere).allSatisfy { $0.url.hasPrefix("http://203.0.113.7/vopi-storage/jobs/") })
        }
    }

    @Test(arguments: [
        ("59", "400 VALIDATION_ERROR"), ("86401", "400 VALIDATION_ERROR"), ("90.5", "422 VALIDATION_ERROR"),
        ("60", "200 "),
    ])
    func `the time of links has its bounds`(_ seconds: String, _ answer: String) async throws {
        try await withVOPI(rules: .quick) { _, client async throws in
            let id = try await client.job(noise(100, seed: 1))
            _ = try await client.statuses(of: id, 1)
            #expect(try await client.get("/jobs/\(id)/download-urls?expiresIn=\(seconds)").coded == answer)
        }
    }

    @Test func `names can be hostile`() async throws {
        var rules = VOPIRules.quick
        rules.hasHostileNames = true
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 1)
            let answer = try await client.get("/jobs/\(id)/download-urls").value
            let names = (answer["frames"]?.items ?? []).compactMap { $0["frameId"]?.text }
            #expect(names.contains("../../../escape") && names.contains("") && names.contains { $0.count == 300 })
            #expect(names.count > Set(names).count)
            #expect(answer["commercialImages"]?[".."]?["../../up"]?.text != nil)
            for link in links(answer) { #expect(try await client.http.send("GET", link.url).status == 200) }
            #expect(sandbox.pictures(of: id).count > 40)
        }
    }

    @Test func `metadata tells the product for three shops, or is missing`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let video = noise(5000, seed: 1)
            let id = try await client.job(video)
            _ = try await client.statuses(of: id, 1)
            let metadata = try await client.get("/jobs/\(id)/metadata").value
            #expect(metadata["platforms"]?.fields?.keys.sorted() == ["amazon", "ebay", "shopify"])
            #expect(metadata["product"]?["title"]?.text == "Product \(sha256(video).prefix(8))")
            #expect(try await client.get("/jobs/\(id)/download-urls").value["productMetadata"] == metadata)
            sandbox.rules.hasMetadata = false
            let bare = try await client.job(video)
            _ = try await client.statuses(of: bare, 1)
            #expect(try await client.get("/jobs/\(bare)/metadata").coded == "404 NOT_FOUND")
            #expect(try await client.get("/jobs/\(bare)/download-urls").value["productMetadata"] == .null)
        }
    }

    @Test func `the other reads know no owner and no end`() async throws {
        try await withVOPI(rules: .quick) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 1)
            let frames = try await client.get("/jobs/\(id)/frames").value.items
            #expect(frames?.count == 3 && frames?.first?["scores"] == [:])
            let final = try await client.get("/jobs/\(id)/frames/final").value.items
            #expect(final?.first?["obstructions"] == [:] && final?.first?["variantDescription"] == "")
            let grouped = try await client.get("/jobs/\(id)/images/grouped").value
            #expect(grouped["product_1_hero"]?["transparent"]?.text?.contains("/vopi-storage/jobs/") == true)
            let nobody = "/jobs/00000000-0000-4000-8000-000000000000"
            #expect(try await client.get(nobody + "/frames").value == [])
            #expect(try await client.get(nobody + "/images/grouped").value == [:])
        }
    }

    @Test func `one picture can be deleted`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1), config: Self.versions)
            let early = try await client.send("DELETE", "/api/v1/jobs/\(id)/images/hero/real")
            #expect(early.coded == "400 BAD_REQUEST")
            _ = try await client.statuses(of: id, 1)
            for (version, status) in [("nope", 404), ("real", 200), ("real", 404), ("a%20b", 422)] {
                let answer = try await client.send("DELETE", "/api/v1/jobs/\(id)/images/hero/\(version)")
                #expect(answer.status == status, "\(version)")
            }
            let left = try await client.send("DELETE", "/api/v1/jobs/\(id)/images/hero/transparent").value
            #expect(left == ["commercialImages": [:]] && sandbox.pictures(of: id).count == 3)
        }
    }
}

@Suite struct VOPIUploadTests {
    @Test func `a video goes in by its presigned address`() async throws {
        try await withVOPI { sandbox, client async throws in
            let video = noise(300_000, seed: 1)
            let presigned = try await client.presign()
            let key = try #require(presigned.value["key"]?.text)
            #expect(presigned.status == 200 && presigned.value["expiresIn"]?.number == 3600)
            #expect(key.hasPrefix("uploads/") && key.hasSuffix(".mov"))
            let url = try #require(presigned.value["uploadUrl"]?.text)
            for _ in 0..<2 {
                let put = try await client.http.send("PUT", url, video, headers: ["Content-Type": "video/quicktime"])
                #expect(put.status == 200 && put.headers["etag"] == "\"\(md5(video))\"")
            }
            let kept = try #require(sandbox.videos().first)
            #expect(kept.key == key && kept.publicURL == presigned.value["publicUrl"]?.text)
            #expect(kept.sha256.hex == sha256(video) && kept.size == 300_000)
            #expect(kept.contentType == "video/quicktime" && kept.puts == 2)
            #expect(sandbox.tally.presigns == 1 && sandbox.tally.puts == 2)
        }
    }

    @Test(arguments: [
        ("clip.webm", "webm"), ("evil.exe", "exe"), ("a.b/c", "mp4"), ("noending", "mp4"), ("x.", "mp4"), ("", "mp4"),
    ])
    func `the ending of the key is the name's, whatever the type is`(_ name: String, _ ending: String) async throws {
        try await withVOPI { _, client async throws in
            let key = try await client.presign(["filename": .string(name)]).value["key"]?.text ?? ""
            #expect(key.hasSuffix("." + ending))
        }
    }

    @Test func `an address is good for its time only, and for PUT without a login`() async throws {
        let clock = TestClock()
        try await withVOPI(faults: VOPIFault(.expiredURLs, at: .presign), clock: clock) {
            sandbox, client async throws in
            for wait in [Duration.zero, .seconds(61)] {
                let url = try await client.presign(["expiresIn": 60]).value["uploadUrl"]?.text ?? ""
                clock.pass(wait)
                let late = try await client.http.send("PUT", url, Data("x".utf8))
                #expect(late.status == 403 && late.text.contains("Request has expired"))
            }
            let url = try await client.presign().value["uploadUrl"]?.text ?? ""
            let signed = try await client.http.send("PUT", url, Data("x".utf8), headers: ["Authorization": "Bearer x"])
            #expect(signed.status == 400 && signed.text.contains("Only one auth mechanism"))
            #expect(try await client.http.send("PUT", url + "0", Data("x".utf8)).status == 403)
            #expect(sandbox.videos().isEmpty && sandbox.tally.puts == 0)
        }
    }

    static let refusals: [(SandboxJSON, String)] = [
        (["expiresIn": 86_401], "400 VALIDATION_ERROR"), (["expiresIn": 59], "400 VALIDATION_ERROR"),
        (["expiresIn": .number(90.5)], "422 VALIDATION_ERROR"), (["expiresIn": "3600"], "200 "),
        (["contentType": .null], "400 VALIDATION_ERROR"), (["contentType": "video/x-matroska"], "400 VALIDATION_ERROR"),
        (["filename": .null], "200 "),
        (["filename": .string(String(repeating: "a", count: 256))], "400 VALIDATION_ERROR"),
        ([:], "200 "), (["unknown": 1], "200 "), ("text", "400 VALIDATION_ERROR"), ([1], "400 VALIDATION_ERROR"),
    ]

    @Test(arguments: refusals)
    func `presign checks what it is asked`(_ body: SandboxJSON, _ answer: String) async throws {
        try await withVOPI { _, client async throws in
            #expect(try await client.presign(body).coded == answer)
        }
    }

    @Test func `bodies are refused before logins are, and types as if the server were at fault`() async throws {
        try await withVOPI { _, client async throws in
            var nobody = client
            nobody.token = nil
            #expect(try await nobody.presign(["expiresIn": 1]).status == 400)
            #expect(try await nobody.presign([:]).status == 401)
            func raw(_ type: String, _ body: Data) async throws -> String {
                let headers = ["Content-Type": type, "Authorization": "Bearer \(client.token ?? "")"]
                let url = client.http.origin + "/api/v1/uploads/presign"
                return try await client.http.send("POST", url, body, headers: headers).coded
            }
            #expect(try await raw("application/json", Data("{".utf8)) == "500 INTERNAL_ERROR")
            #expect(try await raw("application/json; charset=utf-8", Data("{}".utf8)) == "200 ")
            #expect(try await raw("text/plain", Data("hi".utf8)) == "400 VALIDATION_ERROR")
            #expect(try await raw("application/xml", Data("<a/>".utf8)) == "500 INTERNAL_ERROR")
            let large = Data("{\"a\":\"\(String(repeating: "x", count: 1 << 20))\"}".utf8)
            #expect(try await raw("application/json", large) == "500 INTERNAL_ERROR")
        }
    }
}
