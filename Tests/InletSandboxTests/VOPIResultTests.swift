import Foundation
import InletCore
import InletSandbox
import Testing

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
            let images = try await client.get("/jobs/\(id)/images").value.items
            #expect(images?.first?["version"] == "transparent" && images?.first?["error"] == "")
            let grouped = try await client.get("/jobs/\(id)/images/grouped").value
            #expect(grouped["product_1_hero"]?["transparent"]?.text?.contains("/vopi-storage/jobs/") == true)
            #expect(try await client.get("/jobs/\(id)/video").value["metadata"] == [:])
            let nobody = "/jobs/00000000-0000-4000-8000-000000000000"
            #expect(try await client.get(nobody + "/frames").value == [])
            #expect(try await client.get(nobody + "/images/grouped").value == [:])
            #expect(try await client.get(nobody + "/video").status == 404)
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
